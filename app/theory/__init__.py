"""What to expect: formulas, costs, intervals, and the rules on small tables. numpy only."""
