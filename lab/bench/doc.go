// Command bench measures the whole program as a user runs it: a release build in a process of its own,
// between a broker, a PostgreSQL and a stand-in service that are processes of their own. `make bench` runs it
// and writes the first figures of docs/performance.md, and the tables and plots of docs/plots.
// `bin/bench --help` lists the settings.
//
// On a machine with other users, wall time is a poor measure. So the figures are, as far as possible, the CPU
// time of the measured child (user and system, by the kernel's account), ratios of two things done one after
// the other in the same round, and counts. Every figure is the median of its rounds, and the table shows the
// smallest and the largest beside it.
//
// An older version can be measured beside this one: --against builds it from its sources, and each round of a
// line measures both programs one after the other, on stages of the same shape.
//
// A stage holds the parts that live as long as the run: the database, the shop, and the programs. A round is
// one measurement of one line with one program. Each line of the report is a function that takes a round and
// adds figures to its table and points to its plots. lines lists them.
package main
