"""How a run is shown: PySide6 and pyqtgraph, never torch."""
