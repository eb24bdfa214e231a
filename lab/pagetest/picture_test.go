//go:build page

package pagetest

import (
	"bytes"
	"cmp"
	"image"
	"image/color"
	"image/draw"
	"image/png"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/chromedp/chromedp"
)

// The picture of README.md: make page-picture has a demo at PAGE, in its first load.
func TestTheDemoIsPictured(t *testing.T) {
	page := os.Getenv("PAGE")
	if page == "" {
		t.Skip("PAGE names no page: make page-picture does")
	}
	b := open(t)
	b.look(page, 1265, 1985, 1, false)
	js[string](b, `document.documentElement.style.scrollbarWidth = "none"`)
	b.until("all other resources are loaded, users are half there, and charts are drawn",
		`document.querySelectorAll("article .state").length === 5 &&
		[...document.querySelectorAll("article")].filter((e) => e.innerText.includes("following")).length === 4 &&
		document.querySelector('article[aria-labelledby="resource-users"]').innerText
		.match(/Rows published\s+([\d,]+)/)[1].replaceAll(",", "") > 600000
		&& document.querySelectorAll("canvas").length === 5`)
	b.says("#latest tbody", "users")
	shot, err := chromedp.Run(b.ctx, chromedp.CaptureScreenshot())
	if err != nil {
		t.Fatal(err)
	}
	whole, err := png.Decode(bytes.NewReader(shot))
	if err != nil {
		t.Fatal(err)
	}
	var small bytes.Buffer
	if err := (&png.Encoder{CompressionLevel: png.BestCompression}).Encode(&small, paletted(whole)); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(os.Getenv("PAGE_SHOTS"), t.Name()+"-load.png")
	if err := os.WriteFile(path, small.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
}

// paletted has the commonest 256 colours of a picture alone, which makes its file smaller. A page has few,
// and letters' edges.
func paletted(whole image.Image) *image.Paletted {
	counts := map[color.Color]int{}
	for y := whole.Bounds().Min.Y; y < whole.Bounds().Max.Y; y++ {
		for x := whole.Bounds().Min.X; x < whole.Bounds().Max.X; x++ {
			counts[whole.At(x, y)]++
		}
	}
	commonest := slices.SortedFunc(maps.Keys(counts), func(a, b color.Color) int {
		return cmp.Compare(counts[b], counts[a])
	})
	few := image.NewPaletted(whole.Bounds(), commonest[:min(256, len(commonest))])
	draw.Draw(few, few.Bounds(), whole, whole.Bounds().Min, draw.Src)
	return few
}
