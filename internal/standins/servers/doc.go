// Package servers starts the real parts that storestream stands between, for the lab and for the tests.
//
//	Postgres (and a Standby)   PgBouncer   Kafka   Apicurio    Program: one of this project's own
//	                                       MirrorMaker
//	    |                          |         |         |           |
//	    +--------------- daemon ---+---------+---------+           |     ended and started again, same port
//	                        |                                      |
//	                     process ----------------------------------+     a child, its log and its end
//
//	Broker (kfake)   Registry (srfake)                                   embedded: in this process
//
// Everything listens on 127.0.0.1 only. Each server keeps its data in a private folder, by default a
// temporary one that Stop removes. If this process is root, servers that refuse root run as the user postgres
// or, if that is missing, as the system's user nobody. On Linux a child dies with this process, even when
// SIGKILL ends that. The folders that it leaves behind then go when the next server of the kind starts.
//
// SERVERS_POSTGRES and SERVERS_KAFKA in the environment ask for other versions than the
// usual ones, such as 13.23.0 and 3.6.2, which are then fetched (make test-versions).
//
// The settings follow docker-compose.yml for every server that both have. None is fit for production, because
// the servers do not sync to disk.
package servers
