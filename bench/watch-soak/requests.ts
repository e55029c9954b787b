import type { OutgoingHttpHeaders } from 'node:http'
import { Agent, request } from 'node:https'
import type { KubeConfig } from '@kubernetes/client-node'

/** The fields of Kubernetes objects that the soak reads. */
export interface AnyObject {
  readonly apiVersion?: string
  readonly kind?: string
  readonly metadata: {
    readonly name: string
    readonly uid: string
    readonly resourceVersion: string
    readonly annotations?: Readonly<Record<string, string>>
  }
}

export interface Reply {
  readonly status: number
  readonly body: unknown
}

/** Sends one request and reads the whole response. */
export type Send = (method: string, path: string, body?: object, contentType?: string) => Promise<Reply>

/** Sends requests to the cluster of `config` over keep-alive connections. */
export async function createSender(config: KubeConfig): Promise<{ send: Send; close: () => void }> {
  const server = config.getCurrentCluster()?.server ?? ''
  const options: Parameters<KubeConfig['applyToHTTPSOptions']>[0] = {}
  await config.applyToHTTPSOptions(options)
  const { ca, cert, key } = options
  // The library sets header fields, not a list of lines.
  const credentials = options.headers as OutgoingHttpHeaders | undefined
  const agent = new Agent({ keepAlive: true, ...(ca && { ca }), ...(cert && { cert }), ...(key && { key }) })
  const send: Send = (method, path, body, contentType = 'application/json') =>
    new Promise((resolve, reject) => {
      const payload = body === undefined ? '' : JSON.stringify(body)
      const headers = {
        ...credentials,
        accept: 'application/json',
        'content-type': contentType,
        // Without an explicit length, Node sends the body of a DELETE without framing.
        'content-length': Buffer.byteLength(payload),
      }
      const call = request(`${server}${path}`, { method, agent, headers }, (response) => {
        const chunks: Buffer[] = []
        response.on('data', (chunk: Buffer) => chunks.push(chunk))
        response.on('error', reject)
        response.on('end', () => {
          const text = Buffer.concat(chunks).toString()
          // A watch without events and unknown paths do not return JSON.
          const answer: unknown = text.startsWith('{') ? JSON.parse(text) : undefined
          resolve({ status: response.statusCode ?? 0, body: answer })
        })
      })
      call.on('error', reject)
      call.end(payload)
    })
  return { send, close: () => agent.destroy() }
}
