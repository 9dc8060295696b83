"""Arguments of classes: found through `**kwargs`, and misspelt ones named by the class that was called."""

import copy
import inspect
import pickle

import pytest
from torch import nn

from conbandit_torch.core.arguments import arguments_of, name_misspelt_arguments


class Base(nn.Module):
    def __init_subclass__(cls, **kwargs):
        super().__init_subclass__(**kwargs)
        name_misspelt_arguments(cls)

    def __init__(self, size: int, *, seed: int = 0) -> None:
        super().__init__()
        self.size, self.seed = size, seed


class Linear(Base):
    def __init__(self, size, *, ridge: float = 1.0, alpha: float = 0.25, seed: int = 0) -> None:
        super().__init__(size, seed=seed)
        self.ridge, self.alpha = ridge, alpha


class Mixed(Linear):
    """Passes on what it does not know, and an argument that its own caller cannot give."""

    def __init__(self, size, *, mix: float = 0.5, **base) -> None:
        super().__init__(size, ridge=1 - mix, **base)


class Named(Mixed):
    pass


class TakesAnything(Base):
    def __init__(self, **anything) -> None:
        nn.Module.__init__(self)
        self.anything = anything


@pytest.mark.parametrize("cls", [Linear, Mixed, Named])
def test_a_misspelt_argument_is_named_with_the_class_that_was_called(cls):
    with pytest.raises(TypeError) as caught:
        cls(3, alhpa=0.2)
    assert str(caught.value) == f"{cls.__name__} has no argument 'alhpa'; did you mean 'alpha'?"


def test_an_argument_like_no_other_is_told_what_there_is():
    with pytest.raises(TypeError, match="^Linear has no argument 'colour'; it has size, ridge, alpha, seed$"):
        Linear(3, colour=1)


def test_good_arguments_arrive_wherever_they_are_passed_on_to():
    made = Named(3, mix=0.75, alpha=0.2, seed=4)
    assert (made.size, made.ridge, made.alpha, made.seed) == (3, 0.25, 0.2, 4)


def test_the_signature_stays_that_of_the_constructor():
    assert list(inspect.signature(Mixed).parameters) == ["size", "mix", "base"]
    assert "ridge=1 - mix" in inspect.getsource(Mixed.__init__)


def test_copies_and_pickles_are_made_as_ever():
    for again in (copy.deepcopy(Named(3)), pickle.loads(pickle.dumps(Named(3)))):
        assert again.size == 3


def test_arguments_are_found_through_kwargs_with_their_types_and_defaults():
    parameters, takes_any = arguments_of(Named)
    assert list(parameters) == ["size", "mix", "ridge", "alpha", "seed"] and not takes_any
    assert parameters["alpha"].annotation is float and parameters["alpha"].default == 0.25


def test_a_class_that_takes_anything_gets_it():
    assert TakesAnything(a=1).anything == {"a": 1}
