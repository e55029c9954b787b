import { gzipSync } from 'node:zlib'
import assert from 'node:assert/strict'
import { kinds } from '@tenon/api'
import { type HttpRequest, readText, Secret, SeededRandom, silentLogger, VirtualClock } from '@tenon/runtime'
import type {
  JoinCredentials,
  JoinResult,
  KubeletHandle,
  KubeletSpec,
  LocalApi,
  NodeJoiner,
} from '@tenon/devcluster'
import { createTestApiServer } from '@tenon/devcluster/test-api'
import { createExoscale, type Exoscale, type ExoscaleOptions } from './exoscale.ts'
import type { ExoscaleSettings } from './settings.ts'
import { authorizationHeader, type Credential } from './api/signature.ts'

export const endpoint = 'https://127.0.0.1:6443'
const authority = '-----BEGIN CERTIFICATE-----\nZmFrZQ==\n-----END CERTIFICATE-----\n'
const token = 'abcdef.0123456789abcdef'
export const clusterId = '5c1f0000-0000-4000-8000-000000000001'
export const standardMedium = 'b6e9d1e8-89fc-4db3-aaa4-9b4c5b1d0844'
export const owner: Credential = { key: 'EXOowner', secret: new Secret('owner-secret') }
/** An id that nothing has. */
export const nobody = '00000000-0000-4000-8000-00000000dead'

/** Everything takes one second, so that instants in tests are easy to tell. */
const steady: Partial<ExoscaleSettings> = {
  operationDelay: { minMs: 1_000, maxMs: 1_000 },
  bootDelay: { minMs: 10_000, maxMs: 10_000 },
}

type Reply = {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  // oxlint-disable-next-line typescript/no-explicit-any -- tests look into replies freely
  readonly body: any
}

/** Lets in who knows endpoint, authority and token, and remembers the kubelets. */
class FakeJoiner implements NodeJoiner {
  readonly kubelets = new Map<string, { readonly spec: KubeletSpec; isRunning: boolean }>()
  attempts = 0
  isDown = false
  /** The bootstrap token that lets in; undefined: any. */
  token: string | undefined = token

  resume(kubelet: KubeletSpec): KubeletHandle {
    return { nodeName: kubelet.nodeName, stop: () => undefined }
  }

  join(credentials: JoinCredentials, spec: KubeletSpec): Promise<JoinResult> {
    this.attempts++
    if (this.isDown) return Promise.reject(new Error('connection refused'))
    const reason = refusalOf(credentials, this.token)
    if (reason !== undefined) return Promise.resolve({ kind: 'refused', reason })
    const kubelet = { spec, isRunning: true }
    this.kubelets.set(spec.nodeName, kubelet)
    const stop = () => {
      kubelet.isRunning = false
    }
    return Promise.resolve({ kind: 'joined', kubelet: { nodeName: spec.nodeName, stop } })
  }
}

function refusalOf(credentials: JoinCredentials, wanted: string | undefined): string | undefined {
  if (credentials.endpoint !== endpoint) return 'nobody answers'
  if (credentials.certificateAuthority !== authority) return 'unknown authority'
  if (wanted !== undefined && credentials.bootstrapToken !== wanted) return 'unauthorized'
  return undefined
}

/** A simulated zone on virtual time with a signing client. */
export class ExoscaleFixture {
  readonly clock = new VirtualClock()
  readonly joiner = new FakeJoiner()
  readonly api: LocalApi = createTestApiServer({ clock: this.clock }).local
  readonly cloud: Exoscale

  constructor(options: Partial<Omit<ExoscaleOptions, 'clock' | 'api' | 'joiner'>> = {}) {
    const { clock, joiner, api } = this
    this.cloud = createExoscale({
      random: new SeededRandom(1),
      logger: silentLogger,
      zone: 'ch-gva-2',
      clusterId,
      clusterEndpoint: endpoint,
      credentials: [owner],
      ...options,
      settings: { ...steady, ...options.settings },
      clock,
      joiner,
      api,
    })
  }

  /** Sends a signed request to `/v2` + path. */
  async call(method: string, path: string, body?: unknown, credential = owner): Promise<Reply> {
    const text = body === undefined ? '' : JSON.stringify(body)
    const parts = { method, path: `/v2${path}`, body: text }
    const expires = Math.floor(this.clock.now() / 1000) + 600
    const authorization = authorizationHeader(credential, { ...parts, expires })
    const json = text === '' ? {} : { 'content-type': 'application/json' }
    return this.send({ ...parts, headers: { authorization, ...json } })
  }

  async send(request: HttpRequest): Promise<Reply> {
    const { status, headers, body } = await this.cloud.handle(request)
    return { status, headers, body: JSON.parse(await readText(body)) }
  }

  /** A call that must be answered with 200; answers the body. */
  async ok(method: string, path: string, body?: unknown): Promise<Reply['body']> {
    const reply = await this.call(method, path, body)
    assert.equal(reply.status, 200, JSON.stringify(reply.body))
    return reply.body
  }

  /** A call that begins an operation; answers the operation after it has ended. */
  async done(method: string, path: string, body?: unknown): Promise<Reply['body']> {
    const operation = await this.ok(method, path, body)
    await this.clock.advance(1_000)
    return this.ok('GET', `/operation/${operation.id}`)
  }

  /** Creates an instance of standard.medium and waits for its operation; answers its id. */
  async instance(fields: Readonly<Record<string, unknown>> = {}): Promise<string> {
    const operation = await this.done('POST', '/instance', this.body(fields))
    assert.equal(operation.state, 'success', JSON.stringify(operation))
    return operation.reference.id
  }

  /** The body of create-instance. */
  body(fields: Readonly<Record<string, unknown>> = {}): Record<string, unknown> {
    return {
      name: 'node-a',
      'disk-size': 50,
      'instance-type': { id: standardMedium },
      template: { id: this.cloud.publishTemplate({ version: '1.34.1', variant: 'standard' }) },
      'user-data': userData(),
      ...fields,
    }
  }

  /** Makes the cluster announce its API server and authority. */
  announce(): void {
    const data = Buffer.from(authority).toString('base64')
    this.api.create(kinds.configMap, {
      apiVersion: 'v1',
      kind: 'ConfigMap',
      metadata: { namespace: 'kube-public', name: 'cluster-info' },
      data: {
        kubeconfig: `clusters:\n- cluster:\n    certificate-authority-data: ${data}\n    server: ${endpoint}\n`,
      },
    })
  }

  /** The snapshot of an instance. */
  look(id: string) {
    const found = this.cloud.instances().find((instance) => instance.id === id)
    assert.ok(found, `no instance ${id}`)
    return found
  }
}

/** Lines of `settings.kubernetes` that let an instance join. */
function joinLines(changes: Readonly<Record<string, string>> = {}): Record<string, string> {
  return {
    'api-server': `"${endpoint}"`,
    'bootstrap-token': `"${token}"`,
    'cloud-provider': '"external"',
    'cluster-certificate': `"${Buffer.from(authority).toString('base64')}"`,
    ...changes,
  }
}

/** User data as a node autoscaler sends it: TOML, gzip, base64; an empty value leaves its line out. */
export function userData(changes: Readonly<Record<string, string>> = {}, tables = ''): string {
  return gzipSync(document(changes, tables)).toString('base64')
}

/** The same as plain TOML. */
export function document(changes: Readonly<Record<string, string>> = {}, tables = ''): string {
  const lines = Object.entries(joinLines(changes)).filter(([, value]) => value !== '')
  return `[settings.kubernetes]\n${lines.map(([key, value]) => `${key} = ${value}`).join('\n')}\n${tables}`
}
