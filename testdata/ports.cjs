// ports.cjs N: prints N ports that no program has, and that the system gives to no connection meanwhile.
const found = new Set();
(function pick() {
  const port = 10000 + Math.floor(Math.random() * 10000);
  const server = require("net").createServer().once("error", pick).listen(port, () => server.close(() => {
    found.add(port);
    if (found.size < process.argv[2]) pick(); else console.log([...found].join(" "));
  }));
})();
