"""The transition table of cogrid, as a model whose every reachable state is visited.

A test that runs real processes sees a few of the orders in which things can happen. This
package sees all of them, within small bounds: each file holds one view of the table, reduced
to what that view is about.

* `machine` (with `state`, `tasks`, `workers`, `process`, `faults`, `reader`, `invariants`):
  tasks and workers while calls get lost or come late, processes die, an operator deletes
  things, a second machine takes a name, and the server fails over to an older copy;
* `clients`: who wants an answer, and when nobody does any more;
* `partial`: a script that stops after any of its writes;
* `wake`: markers, and whether a task can lie while a worker sleeps;
* `ghost`: with time, whether a living worker can ever be called a ghost;
* `turns`: whose turn it is in a queue.

`explore` walks any of them. It looks for a state or a step that breaks an invariant, for a
state from which the system cannot come to rest any more, and for a circle in which it would
spin at full speed. `mutants` leaves out one rule at a time; each must be caught, which shows
that the rule is needed and that the model would notice.
"""
