/** The way out of the network: proxies and authorities of the environment, over real sockets. */
import assert from 'node:assert/strict'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { createServer as createHttpServer, type Server } from 'node:http'
import { createServer as createHttpsServer } from 'node:https'
import { type AddressInfo, connect, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, beforeEach, describe, it } from 'node:test'
import { createCredentials, type Credentials } from '@tenon/devcluster'
import type { NodeGroupDependencies, ProviderEnvironment, ProviderKubernetes } from '@tenon/provider'
import {
  messageOf,
  readText,
  SeededRandom,
  serveHttps,
  silentLogger,
  type SocketServer,
  type Transport,
  VirtualClock,
} from '@tenon/runtime'
import { clusterId, ExoscaleFixture } from '@tenon/simulator-exoscale/fixture'
import { routeTo } from './api/connection/proxy.ts'
import { HttpsTransport } from './api/https-transport.ts'
import { exoscale } from './module.ts'
import { nodeGroupModule } from './nodegroups/open.ts'
import { preflightModule } from './preflight/preflight.ts'
import { aWorld } from './testing/world.test-support.ts'
import { aNode, scalerKey } from './nodegroups/node-groups.test-support.ts'

const host = 'api-ch-gva-2.exoscale.com'
const unresolvable = 'api-ch-gva-2.exoscale.invalid'
const authorityName = 'tenon-devcluster-ca'

/** Waits of a client are over at once. */
class HastyClock extends VirtualClock {
  override sleep(): Promise<void> {
    return Promise.resolve()
  }
}

/** A proxy that opens tunnels to the one API, whatever host it is asked for. */
interface EgressProxy {
  readonly url: string
  /** Targets of the requests, in their order. */
  readonly asked: string[]
  refusal?: string | undefined
  /** `Proxy-Authorization` that it wants. */
  wanted?: string | undefined
  isSilent?: boolean
  close(): void
}

async function startProxy(server: Server, scheme: string, apiPort: number): Promise<EgressProxy> {
  const sockets = new Set<Socket>()
  server.on('connection', (socket: Socket) => sockets.add(socket))
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const proxy: EgressProxy = {
    url: `${scheme}://127.0.0.1:${(server.address() as AddressInfo).port}`,
    asked: [],
    close: () => {
      for (const socket of sockets) socket.destroy()
      server.close()
    },
  }
  server.on('connect', ({ url = '', headers }, socket: Socket) => {
    proxy.asked.push(url)
    socket.on('error', () => undefined)
    if (proxy.isSilent === true) return
    const refusal =
      proxy.wanted !== undefined && headers['proxy-authorization'] !== proxy.wanted
        ? '407 Proxy Authentication Required'
        : proxy.refusal
    if (refusal !== undefined) return socket.end(`HTTP/1.1 ${refusal}\r\n\r\n`)
    const onward = connect(apiPort, '127.0.0.1', () => {
      socket.write('HTTP/1.1 200 Connection established\r\n\r\n')
      onward.pipe(socket)
      socket.pipe(onward)
    })
    sockets.add(onward)
    onward.on('error', () => socket.destroy())
  })
  server.on('request', ({ url = '' }, response) => {
    proxy.asked.push(url)
    response.writeHead(200, { 'content-type': 'application/json' }).end('{"zones":[{"name":"ch-gva-2"}]}')
  })
  return proxy
}

let credentials: Credentials
let world: ExoscaleFixture
let api: SocketServer
let plainProxy: EgressProxy
let secureProxy: EgressProxy
let folder: string
/** Only for the authority's own, so that nothing else is trusted by chance. */
let bundleFile: string

before(async () => {
  credentials = await createCredentials(Date.UTC(2026, 0, 1), [host, unresolvable])
  world = new ExoscaleFixture({
    credentials: [scalerKey],
    seed: {
      instancePools: [{ id: poolId, name: 'batch', type: 'standard.small', size: 1, prefix: 'batch' }],
    },
  })
  const tls = {
    certificate: credentials.server.certificate,
    privateKey: credentials.server.privateKey,
    certificateAuthority: credentials.certificateAuthority.certificate,
  }
  api = await serveHttps(world.cloud.handle, { host: '127.0.0.1', port: 0, ...tls })
  plainProxy = await startProxy(createHttpServer(), 'http', api.port)
  const served = { cert: tls.certificate + tls.certificateAuthority, key: tls.privateKey.reveal() }
  secureProxy = await startProxy(createHttpsServer(served), 'https', api.port)
  folder = await mkdtemp(join(tmpdir(), 'tenon-egress-'))
  bundleFile = join(folder, 'proxy.pem')
  await writeFile(bundleFile, credentials.certificateAuthority.certificate)
})

after(async () => {
  await api.close()
  plainProxy.close()
  secureProxy.close()
  await rm(folder, { recursive: true })
})

beforeEach(() => {
  for (const proxy of [plainProxy, secureProxy]) {
    proxy.asked.length = 0
    proxy.refusal = proxy.wanted = undefined
    proxy.isSilent = false
  }
})

const program = {
  cloud: { fenced: (transport: Transport) => transport, userAgent: 'test' },
  runtime: { clock: new HastyClock(), random: new SeededRandom(1), logger: silentLogger },
}
const poolId = 'b0010000-0000-4000-8000-000000000001'
const settings = {
  EXOSCALE_ZONE: 'ch-gva-2',
  EXOSCALE_API_KEY: scalerKey.key,
  EXOSCALE_API_SECRET: scalerKey.secret.reveal(),
}

/** The mode `tenon cluster-autoscaler`: reads the group of a node. */
async function clusterAutoscaler(env: ProviderEnvironment): Promise<string> {
  const groups = nodeGroupModule.open({
    ...program,
    env: { ...settings, ...env },
    clusters: {} as NodeGroupDependencies['clusters'],
    discoverySpecs: [],
    nodeGroupSpecs: [],
    allowsEmptyGroups: false,
  })
  const [member] = world.cloud.instances()
  const node = aNode('n', `exoscale://${member?.id ?? ''}`)
  const found = await groups.groupOf(node, new AbortController().signal)
  if (found.kind === 'group') return 'reached'
  return found.reason ?? found.kind
}

/** The mode `tenon controller`: a zone that does not exist is told with those that do, which only the cloud knows. */
async function controller(env: ProviderEnvironment): Promise<string> {
  const kubernetes = { server: 'https://127.0.0.1:6443' } as ProviderKubernetes
  const opened = exoscale.open({
    ...program,
    env: {
      ...settings,
      EXOSCALE_ZONE: 'nowhere',
      EXOSCALE_SKS_CLUSTER_ID: clusterId,
      ...env,
    },
    kubernetes,
  })
  const why = await opened.then(
    () => 'opened without a zone',
    (error: unknown) => messageOf(error),
  )
  return /is not one of the zones .*ch-gva-2/.test(why) ? 'reached' : why
}

for (const [mode, reach] of [
  ['cluster-autoscaler', clusterAutoscaler],
  ['controller', controller],
] as const) {
  describe(`RPB-29 ADO-13 egress in the mode ${mode}`, () => {
    const endpoint = `https://${host}:443/v2`
    const trusted = () => ({ EXOSCALE_API_ENDPOINT: endpoint, SSL_CERT_FILE: bundleFile })
    const direct = () => ({
      EXOSCALE_API_ENDPOINT: `https://localhost:${api.port}/v2`,
      SSL_CERT_FILE: bundleFile,
    })

    for (const variable of ['HTTPS_PROXY', 'https_proxy'])
      it(`RPB-29 ${variable} names the proxy, with its scheme or without`, async () => {
        assert.equal(await reach({ ...trusted(), [variable]: plainProxy.url }), 'reached')
        assert.equal(plainProxy.asked[0], `${host}:443`)
        const bare = plainProxy.url.replace('http://', '')
        assert.equal(await reach({ ...trusted(), [variable]: bare }), 'reached')
      })

    it('RPB-29 a proxy that itself speaks TLS is reached', async () => {
      assert.equal(await reach({ ...trusted(), HTTPS_PROXY: secureProxy.url }), 'reached')
      assert.equal(secureProxy.asked[0], `${host}:443`)
    })

    it('RPB-29 user and password of the proxy are sent and never told', async () => {
      plainProxy.wanted = `Basic ${Buffer.from('me:p@ss').toString('base64')}`
      const named = plainProxy.url.replace('//', '//me:p%40ss@')
      assert.equal(await reach({ ...trusted(), HTTPS_PROXY: named }), 'reached')
      const why = await reach({ ...trusted(), HTTPS_PROXY: named.replace('p%40ss', 'wrong') })
      assert.match(why, new RegExp(`${host}.*${plainProxy.url} of HTTPS_PROXY.*answered 407.*USER:PASSWORD`))
      assert.doesNotMatch(why, /wrong/)
    })

    it('RPB-29 each way to name the authority is honoured', async () => {
      const HTTPS_PROXY = plainProxy.url
      const base = { EXOSCALE_API_ENDPOINT: endpoint, HTTPS_PROXY }
      const missing = join(folder, 'missing.pem')
      assert.equal(await reach({ ...base, SSL_CERT_FILE: bundleFile }), 'reached')
      assert.equal(await reach({ ...base, SSL_CERT_DIR: `${folder}/none:${folder}` }), 'reached')
      assert.equal(await reach({ ...base, NODE_EXTRA_CA_CERTS: bundleFile }), 'reached')
      assert.equal(
        await reach({ ...base, SSL_CERT_FILE: missing, NODE_EXTRA_CA_CERTS: bundleFile }),
        'reached',
      )
    })

    it('RPB-29 without trust the error names host, authority and variables', async () => {
      const why = await reach({ EXOSCALE_API_ENDPOINT: endpoint, HTTPS_PROXY: plainProxy.url })
      for (const word of [
        host,
        authorityName,
        'HTTPS_PROXY',
        'SSL_CERT_FILE',
        'SSL_CERT_DIR',
        'NODE_EXTRA_CA_CERTS',
      ])
        assert.ok(why.includes(word), `${word} in: ${why}`)
      const missing = await reach({
        ...trusted(),
        HTTPS_PROXY: plainProxy.url,
        SSL_CERT_FILE: '/no/such.pem',
      })
      assert.match(missing, /SSL_CERT_FILE names \/no\/such\.pem: ENOENT/)
    })

    it('RPB-29 nothing is sent to a server that is not trusted', async () => {
      const callsBefore = world.cloud.calls().length
      await reach({ EXOSCALE_API_ENDPOINT: endpoint, HTTPS_PROXY: plainProxy.url })
      assert.equal(world.cloud.calls().length, callsBefore)
    })

    it('RPB-29 a certificate for another host is not taken', async () => {
      const other = `https://other.exoscale.com:443/v2`
      const why = await reach({ ...trusted(), EXOSCALE_API_ENDPOINT: other, HTTPS_PROXY: plainProxy.url })
      assert.match(why, /other\.exoscale\.com.*ERR_TLS_CERT_ALTNAME_INVALID/)
    })

    it('RPB-29 NO_PROXY keeps a host from the proxy, and the error says so', async () => {
      for (const NO_PROXY of ['.exoscale.invalid', 'exoscale.invalid', `x, ${unresolvable}:443`, '*']) {
        const why = await reach({
          ...trusted(),
          EXOSCALE_API_ENDPOINT: `https://${unresolvable}/v2`,
          HTTPS_PROXY: plainProxy.url,
          NO_PROXY,
        })
        assert.match(
          why,
          new RegExp(`${unresolvable}, direct because of NO_PROXY: .*take it out of NO_PROXY`),
        )
      }
      assert.deepEqual(plainProxy.asked, [])
      assert.equal(await reach({ ...direct(), HTTPS_PROXY: plainProxy.url }), 'reached')
      assert.deepEqual(plainProxy.asked, [])
    })

    it('RPB-29 without a proxy the error names the host and the variable', async () => {
      const why = await reach({ EXOSCALE_API_ENDPOINT: `https://${unresolvable}/v2` })
      assert.match(why, new RegExp(`no connection to ${unresolvable}: .*name it in HTTPS_PROXY`))
    })

    it('RPB-29 a proxy that is away, refuses or cannot be used is named', async () => {
      assert.match(
        await reach({ ...trusted(), HTTPS_PROXY: 'http://127.0.0.1:1' }),
        new RegExp(
          `no connection to ${host} through the proxy http://127.0.0.1:1 of HTTPS_PROXY: .*ECONNREFUSED`,
        ),
      )
      plainProxy.refusal = '403 Forbidden'
      assert.match(
        await reach({ ...trusted(), HTTPS_PROXY: plainProxy.url }),
        new RegExp(`${host}.*the proxy answered 403 Forbidden to CONNECT ${host}:443: let the proxy pass it`),
      )
      const why = await reach({ ...trusted(), HTTPS_PROXY: 'socks5://me:secret@proxy:1080' }).catch(messageOf)
      assert.match(why, /^HTTPS_PROXY names a proxy of the kind socks5: set it to/)
    })
  })
}

describe('RPB-29 the transport', () => {
  it('RPB-29 an API without TLS is asked through HTTP_PROXY, and not through HTTPS_PROXY', async () => {
    const ask = async (env: ProviderEnvironment) => {
      const transport = new HttpsTransport('http://api.example.com:8080', env)
      const { body } = await transport.send({ method: 'GET', path: '/v2/zone', headers: {} })
      transport.close()
      return await readText(body)
    }
    assert.match(await ask({ HTTP_PROXY: plainProxy.url, HTTPS_PROXY: 'http://127.0.0.1:1' }), /ch-gva-2/)
    assert.deepEqual(plainProxy.asked, ['http://api.example.com:8080/v2/zone'])
  })

  it('RPB-29 one connection serves many requests', async () => {
    const transport = new HttpsTransport(`https://${host}`, {
      HTTPS_PROXY: plainProxy.url,
      SSL_CERT_FILE: bundleFile,
    })
    for (let each = 0; each < 5; each++) {
      const answer = await transport.send({ method: 'GET', path: '/v2/zone', headers: {} })
      await readText(answer.body)
    }
    transport.close()
    assert.equal(plainProxy.asked.length, 1)
  })

  it('RPB-29 gives up when it is told to, while a proxy keeps silent', async () => {
    plainProxy.isSilent = true
    const transport = new HttpsTransport(`https://${host}`, { HTTPS_PROXY: plainProxy.url })
    const stopping = new AbortController()
    const sent = transport.send({ method: 'GET', path: '/', headers: {} }, stopping.signal)
    stopping.abort(new Error('no answer within 20 s'))
    await assert.rejects(sent, new RegExp(`no connection to ${host} through .*: no answer within 20 s`))
    transport.close()
  })
})

describe('RPB-29 what NO_PROXY excludes', () => {
  const table: readonly (readonly [entry: string, url: string, isDirect: boolean])[] = [
    ['example.com', 'https://example.com', true],
    ['example.com', 'https://a.example.com', true],
    ['example.com', 'https://notexample.com', false],
    ['.example.com', 'https://a.example.com', true],
    ['.example.com', 'https://example.com', false],
    ['*.example.com', 'https://a.b.example.com', true],
    ['EXAMPLE.com:443', 'https://example.com', true],
    ['example.com:8443', 'https://example.com', false],
    ['example.com:8443', 'https://example.com:8443', true],
    ['10.0.0.0/8', 'https://10.1.2.3', true],
    ['10.0.0.0/8', 'https://11.1.2.3', false],
    ['10.1.2.3', 'https://10.1.2.3:8443', true],
    ['fd00::/8', 'https://[fd00::1]', true],
    ['[fd00::1]:443', 'https://[fd00::1]', true],
    ['fd00::1', 'https://[fd00::2]', false],
    ['10.0.0.0/99,nonsense/x,,', 'https://10.1.2.3', false],
    ['a, b ,*', 'https://c', true],
    ['', 'https://localhost:6443', true],
    ['', 'https://127.9.9.9', true],
    ['', 'https://[::1]', true],
    ['', 'https://example.com', false],
  ]
  for (const [NO_PROXY, url, isDirect] of table)
    it(`RPB-29 "${NO_PROXY}" and ${url}`, () => {
      const { kind } = routeTo(new URL(url), { HTTPS_PROXY: 'proxy:3128', NO_PROXY })
      assert.equal(kind, isDirect ? 'direct' : 'proxied')
    })
})

it('RPB-29 preflight looks for the name of the proxy where the API is reached through one', () => {
  const open = (env: ProviderEnvironment) =>
    preflightModule.open({
      env: { ...settings, EXOSCALE_SKS_CLUSTER_ID: clusterId, ...env },
      kube: aWorld().kube,
      clock: program.runtime.clock,
      logger: silentLogger,
      userAgent: 'test',
    }).hosts
  assert.deepEqual(open({ HTTPS_PROXY: 'http://proxy.example.com:3128' }), ['proxy.example.com'])
  assert.deepEqual(open({ HTTPS_PROXY: 'proxy.example.com', NO_PROXY: 'exoscale.com' }), [host])
})
