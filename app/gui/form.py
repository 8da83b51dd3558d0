"""The settings of a run as a form; what does not apply is not shown."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec
from PySide6.QtCore import Signal
from PySide6.QtWidgets import QCheckBox, QHBoxLayout, QVBoxLayout, QWidget

from app.gui.choice import Choice
from app.gui.fields import Field, Row
from app.gui.form_rows import LOADING, METHOD_ROWS, MORE_ROWS, PAIR_ROWS, SAMPLING_ROWS, RowSpec
from app.gui.loading_rows import LoadingRows
from app.gui.numbers import Number, WholeNumber
from app.gui.option_rows import OFFERS, OptionRows
from app.gui.pair_picker import PairPicker
from app.gui.plain import label, scaled_font, section_label, tip
from app.gui.row_grid import RowGrid, align
from app.library.catalogue import Catalogue
from app.library.entries import PairEntry
from app.library.overview import Overview
from app.run.methods import METHODS
from app.run.preparation import DeviceMemory, Prepare
from app.run.settings import OptionValue, Precision, RunSettings, Sampling


class Form(QWidget):
    """Pair, method and sampling; the prompt stands apart."""

    changed = Signal()
    """Any setting has changed."""
    pair_changed = Signal()
    """Other models are wanted than before."""

    def __init__(self, catalogue: Catalogue, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("form")
        self.picker = PairPicker(catalogue)
        self.rows: dict[str, Row] = {}
        self._loading = LoadingRows(self.rows)
        self.options = OptionRows(lambda: self.rows["draft_length"].field)
        self._column = QVBoxLayout(self)
        self._column.setContentsMargins(12, 10, 12, 6)
        self._column.setSpacing(5)
        self._grids: list[RowGrid] = []
        self._build()
        align(self._grids, self._all_rows())
        self._connect()
        self.choose_pair(catalogue.default)

    @property
    def pair(self) -> PairEntry | None:
        """The pair that is chosen; None in an empty catalogue."""
        return self.picker.pair

    @property
    def waits(self) -> bool:
        """Whether the pair may have to be fetched first, which choosing it does not begin."""
        return self.picker.waits

    @property
    def precision(self) -> Precision | None:
        """The target's precision; None leaves it to the machine."""
        return self.rows["precision"].field.get()

    @property
    def wanted(self) -> Prepare | None:
        """The models that the form asks for; None without a pair."""
        pair = self.pair
        if pair is None:
            return None
        return Prepare(
            pair.name,
            precision=self.precision,
            draft_precision=self.draft_precision,
            device=self._value("device"),
            draft_device=self._value("draft_device"),
            allow_offload=self._value("allow_offload"),
            passes=self._value("passes"),
            mtp=METHODS[self._value("method")].drafter == "mtp",
        )

    def offer_devices(self, devices: Sequence[DeviceMemory]) -> None:
        """Offers the devices of this machine, if there is anything to choose."""
        self._loading.offer(devices)
        self._refresh()

    @property
    def draft_precision(self) -> Precision | None:
        """The draft model's precision; None takes the pair's own, or where there is no draft."""
        pair = self.pair
        return self.rows["draft_precision"].field.get() if pair and pair.draft else None

    def refuse_precisions(self, reasons: Mapping[str, Mapping[str, str]]) -> None:
        """Greys out what the chosen devices cannot take, by their kinds; each says why."""
        self._loading.refuse(reasons)
        self._refresh()

    def take_catalogue(self, catalogue: Catalogue) -> None:
        """Offers the pairs of another catalogue, and keeps the choice if it is still among them."""
        before = self.pair
        self.picker.take_catalogue(catalogue)
        if self.pair != before:
            self._take_pair()

    def show_standings(self, found: Overview) -> None:
        """Offers the pairs on this machine first, and says of the others what is to be fetched."""
        waited = self.waits
        self.picker.show_standings(found)
        if waited and not self.waits:
            self.pair_changed.emit()

    def choose_pair(self, name: str | None) -> None:
        """Chooses a pair, with the method and draft length that it comes with."""
        before = self.picker.field.get()
        self.picker.field.put(name)
        if self.picker.field.get() == before:
            self._take_pair()

    def mark_pairs(self, reasons: Mapping[str, str]) -> None:
        """Marks the pairs that cannot be used, by their names, and says why."""
        self.picker.mark(reasons)

    def settings(self, prompt: str, *, system: str, raw: bool) -> RunSettings:
        """The settings as they stand. The playground looks: lanes take turns, in full detail."""
        speculates = self.speculation.isChecked()
        method = self._value("method") if speculates else "nothing"
        return RunSettings(
            pair=self._value("pair") or "",
            prompt=prompt,
            system=system,
            raw=raw,
            method=method,
            method_options=self.options.values("method", method),
            draft_length=self._value("draft_length") if speculates else 0,
            draft_length_policy=self._value("draft_length_policy"),
            draft_length_options=self.options.values(
                "draft_length_policy", self._value("draft_length_policy")
            ),
            rule=self._value("rule"),
            rule_options=self.options.values("rule", self._value("rule")),
            sampling=self._sampling(),
            max_new_tokens=self._value("max_new_tokens"),
            stop_strings=self._value("stop_strings"),
            ignore_end_of_text=self._value("ignore_end_of_text"),
            precision=self.precision,
            device=self._value("device"),
            draft_device=self._value("draft_device"),
            allow_offload=self._value("allow_offload"),
            passes=self._value("passes"),
            draft_precision=self.draft_precision,
            context_length=self._value("context_length") or None,
            baseline=speculates,
            repetitions=self._value("repetitions") if speculates else 1,
            order="interleaved",
            detail="full",
        )

    def settle(self) -> bool:
        """Takes the numbers that are typed; False if one lies outside its limits, which is said
        below it: it has the keyboard then.
        """
        fields = [row.field for row in self._all_rows() if not row.field.isHidden()]
        numbers = [field for field in fields if isinstance(field, WholeNumber | Number)]
        wrong = [field for field in numbers if not field.settle()]
        for field in wrong[:1]:
            field.setFocus()
            field.selectAll()
        return not wrong

    def fill(self, settings: RunSettings) -> None:
        """Shows the settings of another run, as far as the form has fields for them."""
        self.rows["pair"].field.put(settings.pair)
        self.speculation.setChecked(settings.method != "nothing")
        if settings.method != "nothing":
            self._choose("method", settings.method, settings.method_options)
            self.rows["draft_length"].field.put(settings.draft_length)
        policy, options = settings.draft_length_policy, settings.draft_length_options
        self._choose("draft_length_policy", policy, options)
        self._choose("rule", settings.rule, settings.rule_options)
        for name in Sampling.__struct_fields__:
            if name in self.rows:
                self.rows[name].field.put(getattr(settings.sampling, name))
        for name in reversed(LOADING):  # devices first: they decide on the precisions to choose
            self.rows[name].field.put(getattr(settings, name))
        for name in ("max_new_tokens", "repetitions", "stop_strings", "ignore_end_of_text"):
            self.rows[name].field.put(getattr(settings, name))
        self.rows["context_length"].field.put(settings.context_length or 0)
        self._refresh()

    def show_notes(self, notes: Iterable[str]) -> None:
        """Shows what loading has found out about the pair."""
        self.picker.show_notes(notes)

    def suggest(self, sampling: Sampling | None) -> None:
        """Shows the sampling that the model's makers suggest; it is never applied unasked."""
        parts = [f"{name.replace('_', '-')} {value:g}" for name, value in _differences(sampling)]
        self.suggestion.setText(f"The model suggests {', '.join(parts)}.")
        self.suggestion.setVisible(bool(parts))

    def _build(self) -> None:
        self.speculation = QCheckBox("Speculation")
        self.speculation.setChecked(True)
        self.speculation.setToolTip(tip("Off: the target writes alone. Nothing is loaded anew."))
        self.more = QCheckBox("More settings")
        self.suggestion = label(tone="muted", wrap=True)
        scaled_font(self.suggestion, 0.88)
        self._section("Pair")
        self._wide("pair", "Pair", self.picker.field, "A target and what guesses ahead of it.")
        self._column.addWidget(self.picker.obstacle)
        self._column.addWidget(self.picker.note)
        self._grid(PAIR_ROWS)
        self._section("Method", self.speculation)
        self._methods = Choice()
        self._wide("method", "Method", self._methods, "How the next tokens are guessed.")
        self._grid(METHOD_ROWS, above="method")
        self._section("Sampling")
        self._grid(SAMPLING_ROWS)
        self._column.addWidget(self.suggestion)
        self._column.addWidget(self.more)
        self._grid(MORE_ROWS)
        self._column.addStretch()
        self.suggest(None)

    def _section(self, title: str, beside: QWidget | None = None) -> None:
        heading = section_label(title)
        row = QHBoxLayout()
        row.setContentsMargins(0, 6 if self._column.count() else 0, 0, 0)
        row.addWidget(heading)
        row.addStretch()
        if beside:
            row.addWidget(beside)
        self._column.addLayout(row)

    def _wide(self, name: str, title: str, field: Field, help_: str) -> None:
        """A field that needs no name beside it, as its section says what it is."""
        self.rows[name] = Row(title, field, help_=help_)
        self.rows[name].name.setParent(self)
        self.rows[name].name.hide()
        self._column.addWidget(field)

    def _grid(self, specs: tuple[RowSpec, ...], *, above: str = "") -> None:
        """A grid of rows. Each is followed by the options of what it offers; first come those of
        the row that stands `above` the grid.
        """
        grid = RowGrid()
        self.options.add(grid, above)
        for spec in specs:
            self.rows[spec.name] = Row(spec.title, spec.make(), help_=spec.help)
            grid.add(self.rows[spec.name], wide=spec.wide)
            self.options.add(grid, spec.name)
        self._column.addLayout(grid)
        self._grids.append(grid)

    def _connect(self) -> None:
        self.rows["pair"].field.edited.connect(self._take_pair)
        for name in LOADING:
            self.rows[name].field.edited.connect(self.pair_changed)
        self.speculation.toggled.connect(self._refresh)
        self.more.toggled.connect(self._refresh)
        for row in self._all_rows():
            row.field.edited.connect(self._refresh)

    def _take_pair(self) -> None:
        """Offers what the chosen pair can do, and sets what it comes with."""
        pair = self.pair
        self.show_notes(())
        if pair is None:
            return
        self._methods.offer(
            (method.label, method.name)
            for method in METHODS.values()
            if method.name != "nothing" and pair.offers(method.drafter)
        )
        self._choose("method", pair.method, pair.method_options)
        self.rows["draft_length"].field.put(pair.draft_length)
        self._choose("draft_length_policy", pair.draft_length_policy, pair.draft_length_options)
        self._choose("rule", pair.rule, pair.rule_options)
        self.picker.show_obstacle()
        self._refresh()
        self.pair_changed.emit()

    def _refresh(self) -> None:
        """Shows the rows that apply."""
        speculates = self.speculation.isChecked()
        self._loading.show(self.pair)
        for spec in MORE_ROWS:
            self.rows[spec.name].set_visible(self.more.isChecked())
        for name in ("method", *(spec.name for spec in METHOD_ROWS)):
            self.rows[name].set_visible(speculates)
        self.rows["repetitions"].set_visible(speculates and self.more.isChecked())
        self.rows["method"].name.hide()
        chosen = {name: self._value(name) for name in OFFERS} if speculates else {}
        self.options.show(chosen)
        for name in ("top_k", "top_p", "min_p", "seed"):
            self.rows[name].set_visible(not self._sampling().greedy)
        self.changed.emit()

    def _sampling(self) -> Sampling:
        return Sampling(
            **{name: self._value(name) for name in Sampling.__struct_fields__ if name in self.rows}
        )

    def _all_rows(self) -> list[Row]:
        return [*self.rows.values(), *self.options.all]

    def _choose(self, row: str, name: str, options: Mapping[str, OptionValue]) -> None:
        """Chooses something that has options of its own, and shows these."""
        self.rows[row].field.put(name)
        self.options.put(row, name, options)

    def _value(self, name: str) -> Any:
        return self.rows[name].field.get()


def _differences(sampling: Sampling | None) -> list[tuple[str, float]]:
    """The values of a suggestion that are not the neutral ones."""
    if sampling is None:
        return []
    neutral = msgspec.structs.asdict(Sampling())
    values = msgspec.structs.asdict(sampling)
    return [(name, value) for name, value in values.items() if value != neutral[name]]
