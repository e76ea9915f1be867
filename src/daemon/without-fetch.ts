/**
 * Node's http has a WebSocket client behind getters that load all of fetch, and whoever imports http as an ES module asks each of its
 * names: 14 MB and a tenth of the start, for what nothing in the daemon uses.
 */
const http = process.getBuiltinModule('node:http')
for (const name of ['WebSocket', 'CloseEvent', 'MessageEvent']) Reflect.deleteProperty(http, name)
