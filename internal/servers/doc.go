// Package servers starts the real parts that storestream stands between, as local processes or in this one, for lab/demo and for
// the tests: PostgreSQL (and a streaming standby), PgBouncer, an embedded Kafka-protocol broker and schema registry, and Apache Kafka.
//
// Everything listens on 127.0.0.1 only. Each server keeps its data in a private folder, by default a temporary one that Stop
// removes. Where this process is root, servers that refuse root run as the user postgres or nobody. On Linux a child dies with this
// process, also when that is killed with SIGKILL; the folders that it then leaves behind are removed when a server is next started.
//
// The settings are those of docker-compose.yml wherever both have them. None is fit for production: nothing is synced to disk.
package servers
