// Command chaos runs storestream while everything around it fails, then compares its topics with the service:
// make chaos [SEED=n] [FOR=5m].
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
//	plan.go, readings.go, mishaps.go, on_*.go   the seed's choices, and the mishaps
//	surroundings.go, broker.go, proxy.go        the parts around storestream
//	fleet.go, instance.go, page.go              storestream itself, and its pages
//	operator.go                                 the person on call
//	killed_sweep.go, broken_load.go             kills in the middle of something
//	on_replays.go                               replays of parts, cancels and pauses, beside the mishaps
//	load.go, job.go, probes.go                  the writers
//	tail.go, decode.go, report.go               the reader of the topics, and the judge
//	stage.go, course.go, patience.go, result.go the whole, the course of a run, and its report
package main
