import { request } from 'node:https'
import { KubeConfig } from '@kubernetes/client-node'
import type { Answer, Ask } from '../src/ask.ts'

/** Sends requests without a client library, so that cases may contain what a library would not send. */
export async function administrator(kubeconfigPath: string): Promise<Ask> {
  const config = new KubeConfig()
  config.loadFromFile(kubeconfigPath)
  const server = config.getCurrentCluster()?.server ?? ''
  const options = {}
  await config.applyToHTTPSOptions(options)
  return (method, path, body, contentType = 'application/json') =>
    new Promise<Answer>((resolve, reject) => {
      const headers = { 'content-type': contentType, accept: 'application/json' }
      const outgoing = request(`${server}${path}`, mergedOptions(options, method, headers), (response) => {
        const chunks: Buffer[] = []
        response.on('data', (chunk: Buffer) => chunks.push(chunk))
        response.on('error', reject)
        response.on('end', () => {
          const text = Buffer.concat(chunks).toString('utf8')
          // The response for a path that is not served is plain text.
          const isJson = response.headers['content-type']?.includes('json') === true
          resolve({
            status: response.statusCode ?? 0,
            body: isJson ? JSON.parse(text) : { message: text },
            warning: response.headers['warning'],
          })
        })
      })
      outgoing.on('error', reject)
      outgoing.end(body && JSON.stringify(body))
    })
}

function mergedOptions(
  options: { readonly headers?: Readonly<Record<string, string>> },
  method: string,
  headers: Readonly<Record<string, string>>,
): object {
  return { ...options, method, headers: { ...options.headers, ...headers } }
}
