// Command chaos runs storestream where everything around it fails, and judges what its topics then hold: make
// chaos [SEED=n] [FOR=5m].
//
// It starts the service's stand-in with live traffic, PostgreSQL behind PgBouncer, a Kafka, a schema
// registry, and two or three storestream processes, some of them built with the race detector. The instances
// reach Kafka, PgBouncer and the registry through proxies. Then mishaps happen to all of them, one after the
// other and at once, as a plan says that is a pure function of the seed (--plan prints it). In the end
// everything is repaired, traffic stops, and every topic is compared with the service.
//
// The judging code knows only what storestream's users know: topics, headers of records, the JSON of
// watermarks, the command line. It decodes values with another Avro library than the one that writes them.
// Read in this order:
//
//	plan.go, readings.go, mishaps.go, on_*.go   what a seed decides, and what may happen
//	surroundings.go, broker.go, proxy.go        what storestream stands between
//	fleet.go, instance.go, page.go              storestream itself, and what its pages say
//	operator.go                                 who does what storestream asks a person to do
//	load.go, job.go, probes.go                  who changes rows
//	tail.go, decode.go, report.go               who reads the topics, and by which rules they are judged
//	stage.go, course.go, patience.go, result.go all of it together, how a run goes, and what it prints
package main
