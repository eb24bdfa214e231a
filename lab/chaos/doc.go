// Command chaos runs storestream where everything around it fails, and judges what its topics then hold: make
// chaos [SEED=n] [FOR=5m].
//
// It starts the service's stand-in with live traffic, PostgreSQL behind PgBouncer, a Kafka, a schema
// registry, and two or three storestream processes, some of them built with the race detector. The instances
// reach Kafka, PgBouncer and the registry through proxies. Then mishaps happen to all of them, one after the
// other and at once, as a plan says that is a pure function of the seed (--plan prints it). In the end
// everything is mended, traffic stops, and every topic is compared with the service.
//
// What judges knows storestream by its contract alone: topics, headers of records, the JSON of watermarks,
// the command line. Values are decoded by another Avro library than the one that writes them. The order in
// which to read:
//
//	plan.go, readings.go, mishaps.go, on_*.go   what a seed decides, and what may happen
//	surroundings.go, broker.go, proxy.go        what storestream stands between
//	fleet.go, instance.go                       storestream itself
//	load.go, probes.go                          who changes rows
//	tail.go, decode.go, report.go               who reads the topics, and by which rules they are judged
//	stage.go, course.go, result.go              all of it together, how a run goes, and what it prints
package main
