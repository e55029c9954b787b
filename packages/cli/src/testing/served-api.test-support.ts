/** The embedded API server on a loopback socket, alone: what was asked of it is recorded, and it can be cut off. */
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { TestContext } from 'node:test'
import { apiVersionOf, karpenterKinds, type KubeObject, kinds, nodeClaimCrd, nodePoolCrd } from '@tenon/api'
import { createApiServer, createCredentials, type LocalApi } from '@tenon/devcluster'
import { SeededRandom, serveHttp, silentLogger, type SocketServer, SystemClock } from '@tenon/runtime'

export const crdType = {
  group: 'apiextensions.k8s.io',
  version: 'v1',
  kind: 'CustomResourceDefinition',
  plural: 'customresourcedefinitions',
  namespaced: false,
}
const host = '127.0.0.1'

export interface ServedApi {
  readonly kubeconfig: string
  readonly local: LocalApi
  /** Method and path of each request, the oldest first. */
  readonly requests: readonly string[]
  /** Ends all connections, and takes none until the answer is called. */
  readonly cut: () => Promise<() => Promise<void>>
}

/** Kinds of objects that are there from the beginning. */
const served = [kinds.node, kinds.pod, karpenterKinds.nodeClaim, karpenterKinds.nodePool]

/**
 * Serves an API with Karpenter's kinds, and nobody who reconciles them.
 * @param folder takes the kubeconfig.
 * @param objects that are there, as they are stored.
 */
export async function serveApi(
  t: TestContext,
  folder: string,
  objects: readonly KubeObject[] = [],
): Promise<ServedApi> {
  const clock = new SystemClock()
  const credentials = await createCredentials(clock.now())
  const server = createApiServer({
    clock,
    random: new SeededRandom('served'),
    logger: silentLogger,
    adminToken: credentials.adminToken,
    signingKey: credentials.signingKey,
    initial: { revision: 1, objects: objects.map((object, at) => storedAs(object, at)) },
  })
  for (const crd of [nodePoolCrd, nodeClaimCrd]) server.local.create(crdType, crd as never)
  const requests: string[] = []
  const listen = async (port: number): Promise<SocketServer> =>
    await serveHttp(
      (request, signal) => {
        requests.push(`${request.method} ${request.path}`)
        return server.handle(request, signal)
      },
      { host, port },
    )
  let socket: SocketServer | undefined = await listen(0)
  t.after(async () => {
    await socket?.close()
    server.stop()
  })
  const { port, url } = socket
  const kubeconfig = join(folder, 'kubeconfig')
  await writeFile(kubeconfig, kubeconfigOf(url, credentials.adminToken.reveal()), { mode: 0o600 })
  return {
    kubeconfig,
    local: server.local,
    requests,
    cut: async () => {
      await socket?.close()
      socket = undefined
      return async () => {
        socket = await listen(port)
      }
    },
  }
}

function storedAs(object: KubeObject, at: number) {
  const { metadata } = object
  const type = served.find((each) => each.kind === object.kind && apiVersionOf(each) === object.apiVersion)
  if (type === undefined) throw new Error(`${object.kind} ${metadata.name} is served by nobody here`)
  const uid = metadata.uid ?? `00000000-0000-4000-8000-${String(at).padStart(12, '0')}`
  return {
    collection: type.group === '' ? type.plural : `${type.plural}.${type.group}`,
    key: `${metadata.namespace ?? ''}\u0000${metadata.name}`,
    object: { ...object, metadata: { ...metadata, uid, resourceVersion: '1' } },
  }
}

function kubeconfigOf(server: string, token: string): string {
  const content = {
    apiVersion: 'v1',
    kind: 'Config',
    clusters: [{ name: 'served', cluster: { server } }],
    users: [{ name: 'admin', user: { token } }],
    contexts: [{ name: 'served', context: { cluster: 'served', user: 'admin' } }],
    'current-context': 'served',
  }
  return JSON.stringify(content)
}
