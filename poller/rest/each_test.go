package rest

import (
	"iter"

	"github.com/storestream/storestream/poller"
)

// each calls take for each batch of a read. It returns the first error of either.
func each(batches iter.Seq2[poller.Batch, error], take func(poller.Batch) error) error {
	for b, err := range batches {
		if err == nil {
			err = take(b)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
