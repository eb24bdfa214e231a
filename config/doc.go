// Package config has the user's settings: the keys, the origins of their values, and the rules for the
// values.
//
//	defaults < a YAML file < the environment < flags       later wins
//	    |          |              |              |
//	    +----------+------+-------+--------------+
//	                      v
//	      loader: the text of every key, and where it was given
//	                      |  complete: defaults that depend on other keys
//	                      |  decode: texts become a Config
//	                      |  rules
//	                      v
//	      a Config, or an error with every mistake
//
// A configuration is taken whole or not at all. An unknown key is an error that names the nearest known one,
// and all mistakes are reported at once, each with its key, its value and its origin. No secret is ever
// shown.
//
// The keys are the koanf tags of Config. The known keys, the names of the environment's variables and what
// `config show` prints are all derived from them. To add a key, add its field with its default and the tags
// of its rule (checkTags), or its rule in rules.go, and its line in example.yaml.
package config
