"""A contract for import-linter that reads "who may import whom" as a table of rows."""

from typing import Any

from grimp import ImportGraph
from importlinter import Contract, ContractCheck, fields, output


class ImportTable(Contract):
    """Each row, "importer <- imported, imported", lists all a part may import of the others.

    A row speaks for everything inside its part, as far as no row of a smaller part does. A module
    that no row covers breaks the contract, and so the table stays whole.
    """

    type_name = "import_table"

    rows: Any = fields.ListField(subfield=fields.StringField())

    def check(self, graph: ImportGraph, verbose: bool) -> ContractCheck:
        """Compares every import inside the root package with the table."""
        (root,) = self.session_options["root_packages"]
        table = dict(read_row(row) for row in self.rows)
        broken = []
        for importer in sorted(name for name in graph.modules if name.startswith(root + ".")):
            part = part_of(importer.removeprefix(root + "."), table)
            if part is None:
                broken.append(f"{importer} is covered by no row")
                continue
            for imported in sorted(graph.find_modules_directly_imported_by(importer)):
                other = part_of(imported.removeprefix(root + "."), table)
                if imported.startswith(root + ".") and other not in {part, None, *table[part]}:
                    broken.append(f"{importer} may not import {imported}")
        return ContractCheck(kept=not broken, metadata={"broken": broken})

    def render_broken_contract(self, check: ContractCheck) -> None:
        """Prints one line for every import that the table does not allow."""
        for line in check.metadata["broken"]:
            output.print_error(line, bold=False)
        output.new_line()


def read_row(row: str) -> tuple[str, frozenset[str]]:
    """Reads "importer <- imported, imported"; nothing behind the arrow means nothing of ours."""
    part, _, allowed = row.partition("<-")
    return part.strip(), frozenset(filter(None, map(str.strip, allowed.split(","))))


def part_of(name: str, table: dict[str, frozenset[str]]) -> str | None:
    """The smallest part with a row that the module lies in."""
    inside = [part for part in table if name == part or name.startswith(part + ".")]
    return max(inside, key=len, default=None)
