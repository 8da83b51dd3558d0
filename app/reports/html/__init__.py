"""The parts of the HTML report: text in colour, charts as SVG, tables, and the page around them."""
