"use strict";
// Shows the times in the reader's time zone.
(() => {
  const elements = document.querySelectorAll("figure [data-time], #periods [datetime]");
  const timeOf = (element) => new Date(element.dataset.time ?? element.dateTime);
  const starts = Array.from(document.querySelectorAll("#periods [datetime]"), timeOf);
  const days = starts.length > 1 && starts[1] - starts[0] > 12 * 3600 * 1000;
  const format = new Intl.DateTimeFormat("en-GB", days ? { day: "numeric", month: "short", year: "numeric" } : { day: "numeric", month: "short", hour: "2-digit", minute: "2-digit", hourCycle: "h23" });
  for (const element of elements) {
    const [, rest] = element.textContent.split(/(?=: )/);
    element.textContent = format.format(timeOf(element)).replace(",", "") + (rest ?? "");
  }
  const zone = document.getElementById("zone");
  if (zone) {
    zone.textContent = Intl.DateTimeFormat().resolvedOptions().timeZone;
  }
})();
