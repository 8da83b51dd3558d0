"""The settings of a run as a form; what does not apply is not shown."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec
from PySide6.QtCore import Signal
from PySide6.QtWidgets import QCheckBox, QGridLayout, QHBoxLayout, QLabel, QVBoxLayout, QWidget

from app.gui.fields import Choice, Field, Row, option_field
from app.gui.form_rows import LOADING, METHOD_ROWS, MORE_ROWS, PAIR_ROWS, SAMPLING_ROWS, RowSpec
from app.gui.pair_offers import PairOffers
from app.gui.plain import label, scaled_font, tip
from app.gui.presets import Presets
from app.library.catalogue import Catalogue
from app.library.entries import PairEntry
from app.library.overview import Overview
from app.run.draft_lengths import LENGTH_POLICIES
from app.run.methods import METHODS
from app.run.options import Offer
from app.run.preparation import DeviceMemory, Prepare
from app.run.rules import RULES
from app.run.settings import OptionValue, Precision, RunSettings, Sampling

_OFFERS: dict[str, Mapping[str, Offer]] = {
    "method": METHODS,
    "draft_length_policy": LENGTH_POLICIES,
    "rule": RULES,
}
"""What rows offer that has options of its own."""


class Form(QWidget):
    """Pair, method and sampling; the prompt stands apart."""

    changed = Signal()
    """Any setting has changed."""
    pair_changed = Signal()
    """Other models are wanted than before."""

    def __init__(self, catalogue: Catalogue, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("form")
        self._catalogue = catalogue
        self._offers = PairOffers(catalogue)
        self._notes: tuple[str, ...] = ()
        self._reasons: Mapping[str, str] = {}
        self.rows: dict[str, Row] = {}
        self._devices: tuple[DeviceMemory, ...] = ()
        self._refusals: Mapping[str, Mapping[str, str]] = {}
        """Why not, by kind of device and precision."""
        self._option_rows: dict[tuple[str, str], dict[str, Row]] = {}
        """The options of everything on offer, by the row that offers it and its name there."""
        self._presets: dict[str, Presets] = {}
        """By the name of the method that has them."""
        self._column = QVBoxLayout(self)
        self._column.setContentsMargins(12, 10, 12, 6)
        self._column.setSpacing(5)
        self._grids: list[QGridLayout] = []
        self._build()
        _align(self._grids, [*self.rows.values(), *self._all_option_rows(), *self._preset_rows()])
        self._connect()
        self.choose_pair(catalogue.default)

    @property
    def pair(self) -> PairEntry | None:
        """The pair that is chosen; None in an empty catalogue."""
        name = self.rows["pair"].field.get()
        return next((pair for pair in self._catalogue.pairs if pair.name == name), None)

    @property
    def waits(self) -> bool:
        """Whether the pair may have to be fetched first, which choosing it does not begin."""
        return self._offers.waits(self.pair)

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
        self._devices = tuple(devices)
        named = [(device.title, device.name) for device in devices]
        self._choice("device").offer([("The best here", None), *named])
        self._choice("draft_device").offer([("The pair's own", None), *named])
        self._refresh()

    @property
    def draft_precision(self) -> Precision | None:
        """The draft model's precision; None takes the pair's own, or where there is no draft."""
        pair = self.pair
        return self.rows["draft_precision"].field.get() if pair and pair.draft else None

    def refuse_precisions(self, reasons: Mapping[str, Mapping[str, str]]) -> None:
        """Greys out what the chosen devices cannot take, by their kinds; each says why."""
        self._refusals = reasons
        self._refresh()

    def take_catalogue(self, catalogue: Catalogue) -> None:
        """Offers the pairs of another catalogue, and keeps the choice if it is still among them."""
        self._catalogue = catalogue
        before = self.pair
        self._offers = self._offers.renewed(catalogue)
        self._pairs.offer(self._offers.offers())
        if self.pair != before:
            self._take_pair()

    def show_standings(self, found: Overview) -> None:
        """Offers the pairs on this machine first, and says of the others what is to be fetched."""
        waited = self.waits
        self._offers = PairOffers(self._catalogue, found)
        self._pairs.offer(self._offers.offers())
        self.show_notes(self._notes)
        if waited and not self.waits:
            self.pair_changed.emit()

    def choose_pair(self, name: str | None) -> None:
        """Chooses a pair, with the method and draft length that it comes with."""
        field = self.rows["pair"].field
        before = field.get()
        field.put(name)
        if field.get() == before:
            self._take_pair()

    def mark_pairs(self, reasons: Mapping[str, str]) -> None:
        """Marks the pairs that cannot be used, by their names, and says why."""
        self._reasons = reasons
        self._pairs.mark(reasons)
        self._show_obstacle()

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
            method_options=self._options("method", method),
            draft_length=self._value("draft_length") if speculates else 0,
            draft_length_policy=self._value("draft_length_policy"),
            draft_length_options=self._options(
                "draft_length_policy", self._value("draft_length_policy")
            ),
            rule=self._value("rule"),
            rule_options=self._options("rule", self._value("rule")),
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

    def fill(self, settings: RunSettings) -> None:
        """Shows the settings of another run, as far as the form has fields for them."""
        self.rows["pair"].field.put(settings.pair)
        self.speculation.setChecked(settings.method != "nothing")
        if settings.method != "nothing":
            self.rows["method"].field.put(settings.method)
            self.rows["draft_length"].field.put(settings.draft_length)
        policy, options = settings.draft_length_policy, settings.draft_length_options
        self.rows["draft_length_policy"].field.put(policy)
        self._put_options("draft_length_policy", policy, options)
        self.rows["rule"].field.put(settings.rule)
        self._put_options("method", settings.method, settings.method_options)
        self._put_options("rule", settings.rule, settings.rule_options)
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
        self._notes = tuple(notes)
        pair = self.pair
        told = (pair.note if pair else "", self._offers.note(pair), *self._notes)
        self.note.setText("\n".join(filter(None, told)))

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
        self.obstacle = label(tone="caution", wrap=True)
        """Why the chosen pair cannot be used."""
        self.obstacle.hide()
        self.note = label(tone="muted", wrap=True)
        self.suggestion = label(tone="muted", wrap=True)
        for small in (self.obstacle, self.note, self.suggestion):
            scaled_font(small, 0.88)
        self._section("Pair")
        self._pairs = Choice(self._offers.offers())
        self._wide("pair", "Pair", self._pairs, "A target and what guesses ahead of it.")
        self._column.addWidget(self.obstacle)
        self._column.addWidget(self.note)
        self._grid(PAIR_ROWS)
        self._section("Method", self.speculation)
        self._methods = Choice()
        self._wide("method", "Method", self._methods, "How the next tokens are guessed.")
        self._method_grid()
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

    def _grid(self, specs: tuple[RowSpec, ...]) -> QGridLayout:
        grid = _empty_grid()
        for spec in specs:
            self._add_row(grid, spec)
        self._column.addLayout(grid)
        self._grids.append(grid)
        return grid

    def _add_row(self, grid: QGridLayout, spec: RowSpec) -> None:
        self.rows[spec.name] = Row(spec.title, spec.make(), help_=spec.help)
        _add(grid, self.rows[spec.name])

    def _method_grid(self) -> None:
        """What every method has; behind each choice the options of whatever it offers, which are
        made once, and hidden.
        """
        grid = self._grid(())
        self._add_options(grid, "method", _OFFERS["method"])
        for spec in METHOD_ROWS:
            self._add_row(grid, spec)
            self._add_options(grid, spec.name, _OFFERS.get(spec.name, {}))

    def _add_options(self, grid: QGridLayout, chosen_by: str, offers: Mapping[str, Offer]) -> None:
        for offer in offers.values():
            rows = {
                option.name: Row(option.label, option_field(option), help_=option.help)
                for option in offer.options
            }
            self._option_rows[chosen_by, offer.name] = rows
            if offer.presets:
                self._presets[offer.name] = Presets(offer.presets, rows, self._draft_length)
                _add(grid, self._presets[offer.name].row)
            for row in rows.values():
                _add(grid, row)

    def _connect(self) -> None:
        self.rows["pair"].field.edited.connect(self._take_pair)
        for name in LOADING:
            self.rows[name].field.edited.connect(self.pair_changed)
        self.speculation.toggled.connect(self._refresh)
        self.more.toggled.connect(self._refresh)
        for row in (*self.rows.values(), *self._all_option_rows(), *self._preset_rows()):
            row.field.edited.connect(self._refresh)

    def _take_pair(self) -> None:
        """Offers what the chosen pair can do, and sets what it comes with."""
        pair = self.pair
        if pair is None:
            self.note.setText("The catalogue offers no pair.")
            return
        self._methods.offer(
            (method.label, method.name)
            for method in METHODS.values()
            if method.name != "nothing" and pair.offers(method.drafter)
        )
        self.rows["method"].field.put(pair.method)
        self._put_options("method", pair.method, pair.method_options)
        self.rows["draft_length"].field.put(pair.draft_length)
        policy, options = pair.draft_length_policy, pair.draft_length_options
        self.rows["draft_length_policy"].field.put(policy)
        self._put_options("draft_length_policy", policy, options)
        self.rows["rule"].field.put(pair.rule)
        self._put_options("rule", pair.rule, pair.rule_options)
        self.show_notes(())
        self._show_obstacle()
        self._refresh()
        self.pair_changed.emit()

    def _show_obstacle(self) -> None:
        """Says why the chosen pair cannot be used, if it cannot."""
        reason = self._reasons.get(self._value("pair"), "")
        self.obstacle.setText(f"Cannot be used: {reason}")
        self.obstacle.setVisible(bool(reason))

    def _refresh(self) -> None:
        """Shows the rows that apply."""
        speculates = self.speculation.isChecked()
        pair = self.pair
        self.rows["draft_precision"].set_visible(bool(pair and pair.draft))
        for spec in MORE_ROWS:
            self.rows[spec.name].set_visible(self.more.isChecked())
        for name in ("method", *(spec.name for spec in METHOD_ROWS)):
            self.rows[name].set_visible(speculates)
        self.rows["repetitions"].set_visible(speculates and self.more.isChecked())
        self.rows["method"].name.hide()
        several = len(self._devices) > 1
        self.rows["device"].set_visible(several)
        self.rows["draft_device"].set_visible(several and pair is not None and bool(pair.draft))
        cards = [device for device in self._devices if device.name.startswith("cuda")]
        for name in ("allow_offload", "passes"):
            self.rows[name].set_visible(bool(cards))
        self._refuse()
        for (chosen_by, name), rows in self._option_rows.items():
            for row in rows.values():
                row.set_visible(speculates and self._value(chosen_by) == name)
        for name, presets in self._presets.items():
            presets.show_match()
            presets.row.set_visible(speculates and self._value("method") == name)
        for name in ("top_k", "top_p", "min_p", "seed"):
            self.rows[name].set_visible(not self._sampling().greedy)
        self.changed.emit()

    def _refuse(self) -> None:
        """Greys out the precisions that each model's own device cannot take."""
        first = self._devices[0].name if self._devices else "cpu"
        device = self._value("device") or first
        own = self.pair.draft_device if self.pair else None
        drafts_on = self._value("draft_device") or own or device
        on = {"precision": device, "draft_precision": drafts_on}
        for name, place in on.items():
            self._choice(name).refuse(self._refusals.get(place.partition(":")[0], {}))

    def _sampling(self) -> Sampling:
        return Sampling(
            **{name: self._value(name) for name in Sampling.__struct_fields__ if name in self.rows}
        )

    def _options(self, chosen_by: str, offer: str) -> dict[str, OptionValue]:
        rows = self._option_rows.get((chosen_by, offer), {})
        return {name: row.field.get() for name, row in rows.items()}

    def _put_options(self, chosen_by: str, name: str, values: Mapping[str, OptionValue]) -> None:
        """Shows these values, and the defaults of the options that are not named."""
        offer = _OFFERS[chosen_by].get(name)
        for option in offer.options if offer else ():
            row = self._option_rows[chosen_by, name][option.name]
            row.field.put(values.get(option.name, option.default))

    def _all_option_rows(self) -> list[Row]:
        return [row for rows in self._option_rows.values() for row in rows.values()]

    def _draft_length(self) -> Field:
        return self.rows["draft_length"].field

    def _preset_rows(self) -> list[Row]:
        return [presets.row for presets in self._presets.values()]

    def _choice(self, name: str) -> Choice:
        field = self.rows[name].field
        assert isinstance(field, Choice)
        return field

    def _value(self, name: str) -> Any:
        return self.rows[name].field.get()


def section_label(title: str) -> QLabel:
    """The heading of a section."""
    made = label(title.upper(), tone="muted")
    scaled_font(made, 0.85)
    made.setAccessibleName(title)
    return made


def _differences(sampling: Sampling | None) -> list[tuple[str, float]]:
    """The values of a suggestion that are not the neutral ones."""
    if sampling is None:
        return []
    neutral = msgspec.structs.asdict(Sampling())
    values = msgspec.structs.asdict(sampling)
    return [(name, value) for name, value in values.items() if value != neutral[name]]


def _empty_grid() -> QGridLayout:
    grid = QGridLayout()
    grid.setHorizontalSpacing(10)
    grid.setVerticalSpacing(4)
    grid.setColumnStretch(1, 1)
    return grid


def _align(grids: list[QGridLayout], rows: Iterable[Row]) -> None:
    """Gives the names of all grids one width."""
    width = max(row.name.sizeHint().width() for row in rows)
    for grid in grids:
        grid.setColumnMinimumWidth(0, width)


def _add(grid: QGridLayout, row: Row) -> None:
    place = grid.rowCount()
    grid.addWidget(row.name, place, 0)
    grid.addWidget(row.field, place, 1)
