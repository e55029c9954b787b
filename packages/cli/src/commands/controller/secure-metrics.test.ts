import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { request } from 'node:https'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test, type TestContext } from 'node:test'
import type { KubeObject, ResourceType } from '@tenon/api'
import { createCredentials, type Credentials, startDevCluster } from '@tenon/devcluster'
import { createClientReviews } from '@tenon/kube'
import { exoscaleSimulator } from '@tenon/simulator-exoscale'
import {
  type HttpRequest,
  type LogFields,
  oneChunk,
  readText,
  Secret,
  SeededRandom,
  silentLogger,
  SystemClock,
  VirtualClock,
} from '@tenon/runtime'
import { serveSecurely } from './secure-metrics.ts'

const rbac = (kind: string, plural: string): ResourceType<KubeObject & object> => ({
  group: 'rbac.authorization.k8s.io',
  version: 'v1',
  kind,
  plural,
  namespaced: false,
})
const scraper = { name: 'scraper', namespace: 'default' }
const accounts = '/api/v1/namespaces/default/serviceaccounts'

interface Answer {
  readonly status: number
  readonly text: string
  /** SHA-256 of the server's certificate. */
  readonly certificate: string
}

/** /metrics of a controller in an embedded cluster with the service accounts `scraper`, which may read it, and `other`. */
async function open(t: TestContext, make: () => Promise<Credentials>) {
  const clock = new VirtualClock()
  const server = await make()
  const cluster = startDevCluster({
    clock,
    random: new SeededRandom(1),
    logger: silentLogger,
    credentials: server,
    simulator: exoscaleSimulator({ zone: 'ch-gva-2', clusterId: 'c', key: 'EXOk', secret: new Secret('s') }),
  })
  const tokenOf = async (name: string) => {
    const post = async (path: string, body: object) => {
      const headers = { 'content-type': 'application/json' }
      const sent: HttpRequest = { method: 'POST', path, headers, body: JSON.stringify(body) }
      return JSON.parse(await readText((await cluster.transport.send(sent)).body)) as {
        readonly status: { readonly token: string }
      }
    }
    await post(accounts, { apiVersion: 'v1', kind: 'ServiceAccount', metadata: { name } })
    return (await post(`${accounts}/${name}/token`, { spec: {} })).status.token
  }
  const api = cluster.server.localAs('kubectl')
  api.create(rbac('ClusterRole', 'clusterroles'), {
    apiVersion: 'rbac.authorization.k8s.io/v1',
    kind: 'ClusterRole',
    metadata: { name: 'metrics-reader' },
    rules: [{ nonResourceURLs: ['/metrics'], verbs: ['get'] }],
  } as KubeObject)
  api.create(rbac('ClusterRoleBinding', 'clusterrolebindings'), {
    apiVersion: 'rbac.authorization.k8s.io/v1',
    kind: 'ClusterRoleBinding',
    metadata: { name: 'metrics-reader' },
    roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'metrics-reader' },
    subjects: [{ kind: 'ServiceAccount', ...scraper }],
  } as KubeObject)
  const folder = mkdtempSync(join(tmpdir(), 'tenon-metrics-'))
  const put = ({ server: { certificate, privateKey } }: Credentials) => {
    writeFileSync(join(folder, 'tls.crt'), certificate)
    writeFileSync(join(folder, 'tls.key'), privateKey.reveal())
  }
  put(server)
  const asked: string[] = []
  const transport: typeof cluster.transport = {
    send: (sent, signal) => {
      asked.push(sent.path.replace(/.*\//, ''))
      return cluster.transport.send(sent, signal)
    },
  }
  const logged: (readonly [string, LogFields?])[] = []
  const logger = {
    ...silentLogger,
    info: (...line: [string, LogFields?]) => logged.push(line),
    error: (...line: [string, LogFields?]) => logged.push(line),
  }
  const stopping = new AbortController()
  const reviews = createClientReviews({ transport, clock })
  const page = () => Promise.resolve({ status: 200, headers: {}, body: oneChunk('up 1\n') })
  const metrics = await serveSecurely(
    page,
    { host: '127.0.0.1', port: 0, folder },
    { reviews, clock, logger },
    stopping.signal,
  )
  t.after(async () => {
    stopping.abort()
    await metrics.close()
    cluster.stop()
    rmSync(folder, { recursive: true })
  })
  const scrape = (token?: string): Promise<Answer> =>
    new Promise((resolve, reject) => {
      const headers = token === undefined ? {} : { authorization: `Bearer ${token}` }
      const sent = request(
        `${metrics.url}/metrics`,
        { headers, agent: false, rejectUnauthorized: false },
        (answer) => {
          const { fingerprint256: certificate } = (
            answer.socket as typeof answer.socket & {
              getPeerCertificate(): { readonly fingerprint256: string }
            }
          ).getPeerCertificate()
          const chunks: Buffer[] = []
          answer.on('data', (chunk: Buffer) => chunks.push(chunk))
          answer.on('end', () => {
            resolve({ status: answer.statusCode ?? 0, text: Buffer.concat(chunks).toString(), certificate })
          })
        },
      )
      sent.on('error', reject)
      sent.end()
    })
  const tokens = { reader: await tokenOf(scraper.name), other: await tokenOf('other') }
  asked.length = 0
  return { scrape, tokens, asked, logged, put, folder, clock }
}

const credentials = () => createCredentials(new SystemClock().now())

test('ADO-14 a scrape needs a token that the cluster knows, of somebody who may get /metrics', async (t) => {
  const { scrape, tokens, asked } = await open(t, credentials)
  assert.equal((await scrape()).status, 401)
  assert.equal((await scrape('made.up.token')).status, 401)
  const denied = await scrape(tokens.other)
  assert.equal(denied.status, 403)
  assert.equal(denied.text, 'system:serviceaccount:default:other may not get /metrics\n')
  assert.deepEqual(
    [(await scrape(tokens.reader)).status, (await scrape(tokens.reader)).text],
    [200, 'up 1\n'],
  )
  // Whoever scrapes again is not asked about again.
  const one = ['tokenreviews', 'subjectaccessreviews']
  assert.deepEqual(asked, ['tokenreviews', ...one, ...one])
})

test('ADO-14 a rotated certificate is presented within a minute; one that cannot be read is not', async (t) => {
  const { scrape, clock, folder, logged, put, tokens } = await open(t, credentials)
  const before = (await scrape(tokens.reader)).certificate
  const until = async (isSo: () => boolean | Promise<boolean>) => {
    for (let tries = 0; tries < 500 && !(await isSo()); tries++) {
      await clock.advance(100)
      await new Promise((resolve) => setImmediate(resolve))
    }
  }
  writeFileSync(join(folder, 'tls.crt'), 'half a cert')
  await until(() => logged.length > 0)
  await clock.advance(60_000)
  assert.equal((await scrape(tokens.reader)).certificate, before)
  assert.deepEqual(
    logged.map(([message]) => message),
    ['/metrics keeps its former certificate'],
  )
  assert.doesNotMatch(JSON.stringify(logged), /PRIVATE/)
  put(await credentials())
  await until(() => logged.length > 1)
  assert.notEqual((await scrape(tokens.reader)).certificate, before)
  assert.equal((await scrape(tokens.reader)).status, 200)
})
