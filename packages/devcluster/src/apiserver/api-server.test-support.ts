import { generateKeyPairSync } from 'node:crypto'
import { type HttpResponse, readText, Secret, SeededRandom, silentLogger, VirtualClock } from '@tenon/runtime'
import type { Retention } from '../storage/index.ts'
import { type ApiServer, type ApiServerOptions, createApiServer } from './http/server.ts'

const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
const testSigningKey = new Secret(privateKey.export({ type: 'pkcs8', format: 'pem' }) as string)

/** An API server in which nobody else writes; the token of its administrator is `admin`. */
export function createTestApiServer(
  options: Pick<ApiServerOptions, 'clock'> & Partial<ApiServerOptions>,
): ApiServer {
  return createApiServer({
    random: new SeededRandom(1),
    logger: silentLogger,
    adminToken: new Secret('admin'),
    signingKey: testSigningKey,
    ...options,
  })
}

/** An answer, read to its end. */
export interface Answer {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  // oxlint-disable-next-line typescript/no-explicit-any -- tests look at whatever the server said
  readonly body: any
}

export interface CallOptions {
  readonly contentType?: string
  readonly accept?: string
  readonly token?: string
}

/** An API server on a virtual clock with what tests need around it. */
export class TestServer {
  readonly clock = new VirtualClock()
  readonly server: ApiServer

  constructor(
    retention?: Retention,
    options: Pick<ApiServerOptions, 'recordsOwners' | 'checksPods' | 'callWebhook' | 'featureGates'> = {},
  ) {
    this.server = createTestApiServer({
      clock: this.clock,
      ...(retention === undefined ? {} : { retention }),
      ...options,
    })
  }

  send(
    method: string,
    path: string,
    body?: unknown,
    options: CallOptions = {},
    signal?: AbortSignal,
  ): Promise<HttpResponse> {
    const headers = {
      authorization: `Bearer ${options.token ?? 'admin'}`,
      'content-type': options.contentType ?? 'application/json',
      accept: options.accept ?? 'application/json',
      'user-agent': 'test/1',
    }
    const text = typeof body === 'string' ? body : JSON.stringify(body)
    return this.server.handle(
      { method, path, headers, ...(body === undefined ? {} : { body: text }) },
      signal,
    )
  }

  async call(method: string, path: string, body?: unknown, options?: CallOptions): Promise<Answer> {
    const response = await this.send(method, path, body, options)
    const text = await readText(response.body)
    const isJson = response.headers['content-type']?.startsWith('application/json') === true
    return { status: response.status, headers: response.headers, body: isJson ? JSON.parse(text) : text }
  }

  merge(path: string, patch: unknown): Promise<Answer> {
    return this.call('PATCH', path, patch, { contentType: 'application/merge-patch+json' })
  }

  /** Watches and gathers events until `stop` is called. */
  watch(path: string): {
    readonly events: Answer['body'][]
    readonly stop: () => void
    readonly ended: Promise<void>
  } {
    const controller = new AbortController()
    const events: Answer['body'][] = []
    const ended = (async () => {
      const response = await this.send('GET', path, undefined, {}, controller.signal)
      for await (const chunk of response.body)
        for (const line of String(chunk).split('\n')) if (line !== '') events.push(JSON.parse(line))
    })()
    return { events, stop: () => controller.abort(), ended }
  }
}

export const podsPath = '/api/v1/namespaces/default/pods'
export const configMapsPath = '/api/v1/namespaces/default/configmaps'

/** A ConfigMap. */
export function aConfigMap(
  name: string,
  data: Record<string, string> = {},
  labels: Record<string, string> = {},
) {
  return { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name, labels }, data }
}

/** A pod of one container. */
export function aPod(name: string, labels: Record<string, string> = {}) {
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name, labels },
    spec: { containers: [{ name: 'app', image: 'app:1' }] },
  }
}
