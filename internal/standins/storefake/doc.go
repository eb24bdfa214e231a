// Package storefake stands in for the commerce data service. It is an independent reading of the service's
// document and shares no code with storestream's reader: a wrong field name would then be wrong on both
// sides, and pass. So it must not import package schemas.
//
//	                 Tx (transaction.go), row locks (locks.go)
//	Shop  ----------+
//	tests ----------+--> Store ---> PostgreSQL: orders and order_items (mirror.go)
//	                       |
//	                       +------> Tables: all rows, in memory
//	                       |          |
//	                   replicas ---> copies of them that lag (replicas.go)
//	                                  |
//	clients <---- Server <------------+
//	       cache    ^
//	                Behaviour: Readings (what the document leaves open) and Faults (what goes wrong)
//
// Every change goes through a Tx. It writes to PostgreSQL first, if there is one, and to memory once
// PostgreSQL has committed. Readings and faults may be changed while the service runs.
//
// Instants are kept in microseconds, as a real service's database would keep them. PostgreSQL shows all of
// it. REST shows the whole second it lies in, because the document's form has no fraction, unless
// Habits.Fractions is set. Config.WholeSeconds stamps whole seconds, so that both paths print the same
// instant.
//
// Where further behaviour belongs: another reading of the document is a field of Readings, how a framework
// writes its answers a field of Habits, a request that the service refuses is a Refusal, something that
// goes wrong is a Fault, and exchange.go obeys them all. What befalls the service as a whole is a method: its
// clock steps (Store.StepClock), it is restored from a backup (Store.Backup, Fake.Restore), a column is
// renamed or dropped (Store.Exec).
//
// All persons are invented: every address ends in example.com, example.org or example.net.
package storefake
