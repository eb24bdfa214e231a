// Package rowsway follows one row through storestream, from the service's answer to the Kafka transaction
// that holds it, and counts our functions on that way. `make rows-way` lists them for somebody who reads the
// code along a row. The number of functions and the depth of the stack have a budget in
// lab/budget/budget.txt.
//
// The program is the real one. Before it is storefake, or a real PostgreSQL behind a real PgBouncer, and
// behind it an embedded broker. The test stands on the wire at two points:
//
//   - The answer: data with the row is on its way to the program. The test holds it back.
//   - The commit: the program has written the row and asks the broker to commit. The test holds that back
//     too.
//
// At both points it waits until the goroutines that poll rest, and takes their stacks. Below a goroutine's
// own stack lies that of the goroutine that started it, at the moment of the start. So work that moved to a
// goroutine of its own is still counted as a call. Goroutines that a library starts are left out.
//
// A function is on a row's way if one of these is true:
//
//   - Waiting: it is on the stack that waits for the answer.
//   - Working: it ran between the two points, once for each row, and takes or returns a value that can hold
//     a row's bytes. Functions that see only ids or times of rows do not count. Nor do those that work on a
//     single field.
//   - Handing on: at the commit, it is on the stack that waits for the broker, or on the stack of the
//     goroutine that waited for the answer, or of one that started it.
//
// To know which functions ran once for each row, the test sends one row, then 21 rows in one answer, and
// then 21 rows without the fields that may be null. A working function has a block of code that ran 20 times
// more often with both answers of 21 rows, and it was not called 40 times more often.
//
// All stacks have their outer part in common: the start of the program and its instance. The way begins
// below it, at the function that cmd calls last. A function literal counts as a function, because a reader
// has to find out who calls it. The body of a loop over an iterator does not: it belongs to the function
// that it stands in.
//
// The depth is the largest number of different functions on one of these stacks, and on any stack that waits
// for another answer, from the first load on.
//
// The test knows our packages by path, and libraries by the calls that speak a protocol. It knows none of
// our functions or types, so a new name changes no count. It cannot see a function that takes a whole batch,
// does not go over its rows, and has returned before the commit.
package rowsway
