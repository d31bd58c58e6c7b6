"""Cooperative groups. Only the group of the whole grid is supported."""

from ..frontend.words import Form

this_grid = Form(
    "cuda.cg.this_grid", "", "0", "The group of all threads of the grid; `group.sync()` waits for all of them."
)
this_grid.is_group = True
thisgrid = this_grid
