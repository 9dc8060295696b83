"""Tests on real data."""

import os

import pytest

real = pytest.mark.skipif("CONBANDIT_DATA" not in os.environ, reason="CONBANDIT_DATA names no folder of data")
