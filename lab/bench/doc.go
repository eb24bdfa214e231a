// Command bench measures the whole program as a user runs it: a release build in a process of its own,
// between a broker, a PostgreSQL and a stand-in service that are processes of their own. `make bench` runs it
// and writes docs/performance.md; `bin/bench --help` says what can be set.
//
// On a machine that others use too, wall time says little. So the figures are, where that is possible, CPU
// time of the child that is measured (user and system, by the kernel's account), ratios of two things done
// one after the other in the same round, and counts. Every figure is the median of its rounds, and the table
// shows the smallest and the largest beside it.
//
// A stage holds what lives as long as the run: the database, the shop, and the program under test. Each line
// of the table is a function that takes the stage and adds to the table; lines lists them.
package main
