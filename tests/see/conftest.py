"""Folders of small models, made once."""

import pytest


@pytest.fixture(scope="session")
def folders(tmp_path_factory):
    """Where bert, gpt2 and marian are, by name."""
    pytest.importorskip("transformers")
    from .models import save_all

    return save_all(tmp_path_factory.mktemp("models"))
