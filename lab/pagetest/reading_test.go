//go:build page

package pagetest

import (
	"fmt"
	"slices"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

var views = []struct {
	name          string
	width, height int64
	scale         float64
	dark          bool
}{
	{"desk", 1280, 900, 1, false}, {"desk-dark", 1280, 900, 1, true}, {"phone", 390, 844, 2, false},
	{"phone-dark", 390, 844, 2, true},
	{"narrow", 320, 568, 2, false}, {"zoomed-200", 640, 450, 2, false}, {"zoomed-400", 320, 225, 4, true},
	{"wide", 1920, 1080, 1, false},
}

// WCAG's contrast of each text that is seen with what is behind it; the least of them, and where. Faded text
// (of a page that has lost its server) is not looked at.
const leastContrast = `(() => {
	const channels = (c) => c.match(/[\d.]+/g).map(Number);
	const luminance = (c) => {
		const [r, g, b] = c.map((v) => (v / 255 <= 0.03928 ? v / 255 / 12.92 : ((v / 255 + 0.055) / 1.055) ** 2.4));
		return 0.2126 * r + 0.7152 * g + 0.0722 * b;
	};
	const behind = (e) => {
		for (; e; e = e.parentElement) {
			const c = channels(getComputedStyle(e).backgroundColor);
			if (c.length === 3 || c[3] === 1) return c;
		}
		return channels(getComputedStyle(document.body).backgroundColor);
	};
	let least = [99, ""];
	for (const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT); walker.nextNode();) {
		const e = walker.currentNode.parentElement;
		if (!walker.currentNode.data.trim() || !e.checkVisibility()) continue;
		const a = luminance(channels(getComputedStyle(e).color).slice(0, 3));
		const b = luminance(behind(e).slice(0, 3));
		const contrast = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
		if (contrast < least[0]) least = [contrast, walker.currentNode.data.trim().slice(0, 60)];
	}
	return least.join(" ");
})()`

// What is cut off, or laid over something else.
const cutOff = `[...document.querySelectorAll("body *")].filter((e) => e.checkVisibility()
	&& !e.closest(".chart, thead, svg") && e.scrollWidth > e.clientWidth + 1 && e.clientWidth > 0)
	.map((e) => e.tagName + "." + e.className + ": " + e.textContent.slice(0, 40))`

func TestThePageIsReadInEveryWindowByDayAndByNight(t *testing.T) {
	_, url := serve(t, trouble)
	b := open(t)
	for _, v := range views {
		b.look(url, v.width, v.height, v.scale, v.dark)
		b.noSideways()
		if cut := js[[]string](b, cutOff); len(cut) > 0 {
			t.Errorf("%s: cut off: %q", v.name, cut)
		}
		var contrast float64
		if _, err := fmt.Sscan(js[string](b, leastContrast), &contrast); err != nil || contrast < 4.5 {
			t.Errorf("%s: the least contrast is %s, expected 4.5 or more", v.name, js[string](b, leastContrast))
		}
		light := js[bool](b, `getComputedStyle(document.body).backgroundColor.match(/\d+/g)[0] > 127`)
		if light == v.dark {
			t.Errorf("%s: the background is light: %v", v.name, light)
		}
		b.shoot(v.name)
	}
}

func TestTheKeyboardReachesEverythingInTheOrderInWhichItIsRead(t *testing.T) {
	_, url := serve(t, trouble)
	b := open(t)
	b.look(url, 1280, 900, 1, false)
	var reached []string
	for range 9 {
		b.do(chromedp.KeyEvent(kb.Tab))
		reached = append(reached, js[string](b, `document.activeElement.textContent`))
		if js[string](b, `getComputedStyle(document.activeElement).outlineStyle`) == "none" {
			t.Errorf("it is not seen that %q has the focus", reached[len(reached)-1])
		}
	}
	if want := []string{"Freeze page", "orders", "order_items", "products", "users", "shipments", "status.json",
		"metrics", "readyz"}; !slices.Equal(reached, want) {
		t.Errorf("the keyboard reaches %q, expected %q", reached, want)
	}
	b.do(chromedp.Evaluate[chromedp.Void](`document.getElementById("pause").focus()`), chromedp.KeyEvent(" "))
	if js[string](b, `document.getElementById("pause").getAttribute("aria-pressed")`) != "true" {
		t.Error("the space bar does not freeze the page")
	}
	b.says("#notices", "Page frozen")
	b.do(chromedp.KeyEvent(kb.Enter))
	b.until("it goes on, and the button keeps the focus", `document.activeElement.id === "pause"
		&& document.activeElement.getAttribute("aria-pressed") === "false"`)
}

func TestTheStructureIsTheOneThatAScreenReaderReads(t *testing.T) {
	_, url := serve(t, trouble)
	b := open(t)
	b.look(url, 1280, 900, 1, false)
	headings := js[[]string](b, `[...document.querySelectorAll("h1, h2, h3")].filter((e) => e.checkVisibility())
		.map((e) => e.tagName + " " + e.textContent)`)
	want := []string{"H1 storestream", "H2 Resources", "H3 orders", "H3 order_items", "H3 products", "H3 users",
		"H3 shipments", "H2 Dead letters", "H2 Instances of the group",
		"H2 What the service has shown", "H2 Latest upserts"}
	if !slices.Equal(headings, want) {
		t.Errorf("headings %q, expected %q", headings, want)
	}
	for what, expression := range map[string]string{
		"the language is said":   `document.documentElement.lang === "en"`,
		"there is one main part": `document.querySelectorAll("main").length === 1`,
		"every section and card has a name": `[...document.querySelectorAll("section, article")]
			.every((e) => document.getElementById(e.getAttribute("aria-labelledby")))`,
		"every chart and bar has a name": `[...document.querySelectorAll("[role=img], progress")]
			.filter((e) => e.checkVisibility()).every((e) => e.getAttribute("aria-label"))`,
		"only the headline is read out by itself": `
			document.querySelectorAll("[role=status], [aria-live]").length === 1`,
		"every cell has a header": `[...document.querySelectorAll("tbody tr")]
			.every((tr) => tr.querySelector("th[scope=row]"))`,
		"nothing comes from elsewhere": `performance.getEntriesByType("resource")
			.every((r) => r.name.startsWith(location.origin))`,
		"the headline changes only with the states": `
			!/[0-9.]+ s/.test(document.getElementById("headline").textContent)`,
	} {
		if !js[bool](b, expression) {
			t.Errorf("not so: %s", what)
		}
	}
}
