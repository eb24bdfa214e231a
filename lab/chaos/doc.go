// Command chaos runs storestream where everything around it fails, and judges what its topics then hold: make chaos [SEED=n] [FOR=5m].
//
// It starts the service's stand-in with live traffic, PostgreSQL behind PgBouncer, a Kafka, a schema registry, and two or three storestream
// processes built with the race detector. The instances reach Kafka, PgBouncer and the registry through proxies. Then mishaps
// happen to all of them, one after the other and at once, as a plan says that is a pure function of the seed (--plan prints it). In the
// end everything is mended, traffic stops, and every topic is compared with the service.
//
// What judges knows storestream by its contract alone: topics, headers of records, the JSON of watermarks, the command line. Values are decoded by another Avro
// library than the one that writes them. The order in which to read:
//
//	plan.go, readings.go, mishaps.go   what a seed decides
//	stage.go, broker.go, proxy.go, instance.go   the parts
//	load.go, probe.go   who changes rows
//	tail.go, decode.go, judge.go   who reads the topics, and by which rules they are judged
//	run.go, report.go   the course of a run, and what it prints
package main
