// Package registry is storestream's client of a schema registry: anything that speaks Confluent's API.
//
// A topic has two subjects there. The subject of its values may get new versions as the schema grows, under
// the registry's compatibility rule. The subject of its keys may not: a key's bytes hold the id of its
// schema, and compaction compares bytes. Under a second id the same row would have two keys, and the topic
// would keep both. So the client refuses a key subject that holds any other schema, even if the registry
// would take ours.
//
// The client looks a schema up before it registers it. So a registry in read-only mode is enough if it has
// the schemas already.
//
// Every method makes one try. Retryable returns whether another one may help.
package registry
