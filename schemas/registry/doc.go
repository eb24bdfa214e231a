// Package registry is storestream's client of a schema registry: anything that speaks Confluent's API.
//
// A topic has two subjects there. The one of its values may get new versions as the schema grows, under
// whatever compatibility rule the registry keeps. The one of its keys may not: a key's bytes hold the id of
// its schema, and compaction compares bytes. Under a second id the same row would have two keys, and the
// topic would keep both. So a key subject that holds any other schema is refused, even where the registry
// itself would take ours.
//
// A schema is looked up before it is registered. That way a registry in read-only mode will do, as long as it
// has the schemas already.
//
// Every method makes one try. Whether another one may help is for Retryable to say.
package registry
