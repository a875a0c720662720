"""A mechanism that was found, with its problem and its figures."""

from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, ClassVar

from sfumato.data.categories import CategoricalData
from sfumato.data.recipe import Recipe
from sfumato.data.samples import Samples
from sfumato.measure.certificate import Certificate
from sfumato.measure.estimate import Estimate
from sfumato.measure.judge import Judgement
from sfumato.measure.outlook import Outlook
from sfumato.mechanism.base import Mechanism
from sfumato.show import InNotebooks, text
from sfumato.solver.outcome import Ending, Solver
from sfumato.solver.problem import Problem
from sfumato.study.folder import save_run
from sfumato.study.question import question
from sfumato.study.record import DataRecord, RunRecord


@dataclass(frozen=True, eq=False)
class Solution(InNotebooks):
    """A mechanism with the problem that it answers, what it was measured to do on the training
    data, and `outlook`, what to expect of it on check-ins to come, where the solver cross-fits.

    >>> from sfumato.data.synthetic import four_corners
    >>> from sfumato.solver.problem import Problem
    >>> problem = Problem(four_corners(seed=0).train, max_loss=173)
    >>> from sfumato.solver.baselines import Coin
    >>> from sfumato.study.solve import solve
    >>> solution = solve(problem, Coin())
    >>> round(solution.loss, 1), round(solution.leakage, 3)
    (173.0, 0.394)
    """

    instead: ClassVar[dict[str, str]] = {
        "sample": "solution.mechanism.sample(truth)",
        "predict": "solution.mechanism.sample(truth)",
        "transform": "solution.mechanism.sample(truth)",
        "html": "sf.compare(solution, data.test).html('report.html')",
        "report": "solution.save('run'), then sf.sanitize('run', 'log.csv', 'reports.csv')",
        "gap": "sf.certify(solution).gap",
        "certify": "sf.certify(solution)",
        "information": "solution.measured.information_bits",
        "export": "solution.save('run'), then sf.export('run', 'dist')",
        "max_loss": "solution.problem.max_loss",
        "load": "sf.load_run('run')",
        "sanitize": "solution.save('run'), then sf.sanitize('run', 'log.csv', 'reports.csv')",
        "bound": "sf.certify(solution)",
        "test": "sf.judge(solution, data.test)",
        "plot": "sf.compare(solution, data.test).plot()",
        "to_pandas": "sf.compare(solution, data.test).to_pandas()",
        "summary": "print(sf.compare(solution, data.test))",
    }

    problem: Problem
    solver: Solver
    seed: int
    mechanism: Mechanism
    measured: Judgement
    ending: Ending
    seconds: float
    history: tuple[dict[str, Any], ...] = field(default=())
    certificate: Certificate | None = None
    outlook: Outlook | None = None

    def __repr__(self) -> str:
        return (
            f"Solution(solver='{self.name}', seed={self.seed}, loss={self.loss:.4g},"
            f" leakage={self.leakage:.4g})"
        )

    @property
    def name(self) -> str:
        """The solver's name."""
        return self.solver.name

    @property
    def status(self) -> str:
        """How the solve ended, in a sentence."""
        return text(self.ending)

    @property
    def warnings(self) -> tuple[str, ...]:
        """What marks a fit that failed, a sentence each."""
        return tuple(map(text, self.ending.warnings))

    @property
    def loss(self) -> float:
        """Measured expected loss on the training data, in metres."""
        return self.measured.loss.value

    @property
    def bayes_error(self) -> Estimate:
        """B(X|Z) on the training data: a probability, higher is more private."""
        return self.measured.bayes_error

    @property
    def information_bits(self) -> Estimate:
        """I(X;Z) on the training data: bits, lower is more private."""
        return self.measured.information_bits

    @property
    def leakage(self) -> float:
        """The problem's objective on the training data: 1 - B(X|Z), bits, or gain."""
        return self.problem.objective.leakage(self.measured.joint)

    def judge(self, samples: Samples | CategoricalData, **options: Any) -> Judgement:
        """Judge its mechanism on other data, by the problem's own loss; the adversary of the learnt
        error learns on the training data.  `options` are those of `sfumato.judge`."""
        train = self.problem.samples
        fitted_on = None if samples.hash == train.hash else train
        return self.problem.judge(self.mechanism, samples, **{"fitted_on": fitted_on} | options)

    def save(
        self, folder: str | Path, *, recipe: Recipe | None = None, test: Judgement | None = None
    ) -> None:
        """Write a run folder: run.json, the mechanism, the certificate, the history.  An older run
        of that name is replaced.

        `recipe` says how the data was got, so that commands find it again; `test` is what was
        measured on held-out check-ins, and says what to expect of check-ins to come where the
        solver does not.
        """
        to_come = self.outlook
        if to_come is None and test is not None:
            to_come = Outlook.held_out(test, self.problem.objective)
        record = RunRecord(
            **question(self.problem, self.solver, self.seed),
            data=DataRecord.of(self.problem.samples, recipe),
            status=self.status,
            warnings=self.warnings,
            ended=self.ending.ended.value,
            proof=None if self.ending.proof is None else self.ending.proof.value,
            seconds=self.seconds,
            train=self.measured.as_dict(),
            test=None if test is None else test.as_dict(),
            to_come=to_come,
        )
        save_run(
            folder,
            record,
            self.mechanism,
            certificate=self.certificate,
            history=self.history,
            resumable=self.solver.resumable,
        )

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "solver": self.name,
            "seed": self.seed,
            "max_loss": self.problem.max_loss,
            "objective": self.problem.objective.name,
            **({} if self.ending.linked is None else {"linked": asdict(self.ending.linked)}),
            "leakage": self.leakage,
            **self.measured.as_dict(),
            "to_come": None if self.outlook is None else self.outlook.as_dict(),
            "status": self.status,
            "warnings": self.warnings,
            "ended": self.ending.ended.value,
            "proof": None if self.ending.proof is None else self.ending.proof.value,
            "seconds": self.seconds,
        }
