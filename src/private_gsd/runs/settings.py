"""The settings of a run: frozen values that check themselves, as they are saved in a release."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, get_args

from private_gsd.data.encoding import OnInvalid
from private_gsd.errors import GsdError, ReleaseError, SchemaError
from private_gsd.measurements.knowledge import Knowledge
from private_gsd.mechanisms.registry import mechanism_from_dict
from private_gsd.privacy.accounts import check_line
from private_gsd.privacy.budget import Budget
from private_gsd.projection.projectors import projector_from_dict
from private_gsd.workloads.checks import whole

if TYPE_CHECKING:
    from collections.abc import Mapping

    from private_gsd.measurements.measurements import Measurements
    from private_gsd.mechanisms.base import Mechanism
    from private_gsd.privacy.budget import RhoBudget
    from private_gsd.projection import Projector

# The largest seeds: of a projection, which is multiplied, and of noise.
MOST_SEED = 2**31 - 1
MOST_NOISE_SEED = 2**63 - 1
MOST_THREADS = 1024


@dataclass(frozen=True)
class RunSettings:
    """What a run does, decided.

    Attributes:
        budget: The budget, with its δ and its conversion.
        mechanism: How the budget is spent.
        projector: What makes tables of measurements.
        knowledge: What is known beside the measurements.
        rows: The number of synthetic rows; None for as many as records are measured, up to a bound.
        random_state: The seed of the projections; privacy does not depend on it.
        dataset: The name of the dataset in the ledger.
        on_invalid: What to do with values outside the schema, "error" or "coerce".
        insecure_noise_seed: The seed of noise that is not private; None for private noise.
        n_records: The number of records of the table, where it is public.
    """

    budget: Budget
    mechanism: Mechanism
    projector: Projector
    knowledge: Knowledge
    rows: int | None
    random_state: int = 0
    dataset: str = "table"
    on_invalid: OnInvalid = "error"
    insecure_noise_seed: int | None = None
    n_records: int | None = None

    def __post_init__(self) -> None:
        check_dataset(self.dataset, self.on_invalid, self.insecure_noise_seed)

    @property
    def rho(self) -> RhoBudget:
        """The budget, in units of ρ."""
        if self.budget.conversion is None:
            raise ReleaseError("the budget of a run has its conversion")
        return self.budget.resolve(n_records=None, conversion=self.budget.conversion)

    def to_dict(self) -> dict[str, Any]:
        """The settings for JSON; external measurements are saved apart."""
        return {
            "budget": self.budget.to_dict(),
            "mechanism": self.mechanism.to_dict(),
            "projector": self.projector.to_dict(),
            "knowledge": self.knowledge.to_dict(),
            "rows": self.rows,
            "random_state": self.random_state,
            "dataset": self.dataset,
            "on_invalid": self.on_invalid,
            "insecure_noise_seed": self.insecure_noise_seed,
            "n_records": self.n_records,
        }

    @classmethod
    def from_dict(cls, saved: Mapping[str, Any], external: Measurements | None) -> RunSettings:
        """The settings that ``to_dict`` wrote; anything else is refused.

        Args:
            saved: What was written.
            external: The external measurements, which were saved apart.
        """
        try:
            others = {name: saved[name] for name in ("dataset", "on_invalid", "n_records")}
            noise_seed = saved["insecure_noise_seed"]
            return cls(
                budget=Budget.from_dict(saved["budget"]),
                mechanism=mechanism_from_dict(saved["mechanism"]),
                projector=projector_from_dict(saved["projector"]),
                knowledge=Knowledge.from_dict(saved["knowledge"], external),
                rows=None if saved["rows"] is None else whole("rows", saved["rows"], 1, 2**31 - 1),
                random_state=whole("random_state", saved["random_state"], 0, MOST_SEED),
                insecure_noise_seed=noise_seed,
                **others,
            )
        except (GsdError, LookupError, TypeError, ValueError, AttributeError) as error:
            words = f"no {error}" if isinstance(error, KeyError) else str(error)
            raise ReleaseError(f"release.json is damaged: {words}") from None


def check_dataset(dataset: Any, on_invalid: Any, insecure_noise_seed: Any) -> None:
    """Refuse a dataset's name, an ``on_invalid`` or a noise seed that makes no sense."""
    check_line(dataset, "dataset")
    if on_invalid not in get_args(OnInvalid):
        raise SchemaError(f"on_invalid must be 'error' or 'coerce', not {on_invalid!r:.80}")
    if insecure_noise_seed is not None:
        whole("insecure_noise_seed", insecure_noise_seed, 0, MOST_NOISE_SEED)
