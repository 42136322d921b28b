// Waits for code on a channel, runs it, answers with what its handler returned.
// In a block: what is declared outside of one, the code would find and could not declare again.
{
  const fs = require('fs');
  const vm = require('vm');
  const channel = Number(process.env.SANDBOX_CHANNEL);
  delete process.env.SANDBOX_CHANNEL;
  const take = (length) => {
    const bytes = Buffer.alloc(length);
    for (let have = 0; have < length; ) {
      const read = fs.readSync(channel, bytes, have, length - have, null);
      if (read === 0) process.exit(1);
      have += read;
    }
    return bytes;
  };
  const { code, event } = JSON.parse(take(take(4).readUInt32BE(0)).toString());
  const say = (what, value) => {
    const json = JSON.stringify(value === undefined ? null : value);
    if (json === undefined) throw new TypeError(`there is no JSON for a value of type ${typeof value}`);
    const text = Buffer.from(what + json);
    if (text.length > 1 + (1 << 20)) {
      throw new RangeError('what a handler returns or yields may be 1 MiB of JSON at most');
    }
    const data = Buffer.alloc(4 + text.length);
    data.writeUInt32BE(text.length, 0);
    text.copy(data, 4);
    for (let sent = 0; sent < data.length; ) sent += fs.writeSync(channel, data, sent);
  };
  const here = require('module').createRequire(process.cwd() + '/');
  Object.assign(globalThis, { require: here, module: { exports: {} } });
  globalThis.exports = globalThis.module.exports;
  vm.runInThisContext(code, { filename: '<execution>' });
  const named = vm.runInThisContext("typeof handler === 'undefined' ? undefined : handler");
  const handler = named || globalThis.module.exports.handler;
  const run = async () => {
    if (!/GeneratorFunction$/.test(handler.constructor.name)) return handler(event);
    // What a handler yields is how far it is; what it returns is its result.
    const steps = handler(event);
    for (;;) {
      const { value, done } = await steps.next();
      if (done) return value;
      say('p', value);
    }
  };
  if (typeof handler === 'function') run().then((value) => say('r', value));
}
