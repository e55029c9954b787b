/** Bugs at the ports of the Clever Cloud provider. */
import { kinds, type KubeObject, type Node, ownValue } from '@tenon/api'
import { type CloudProvider, decorated, isProviderError, ProviderError } from '@tenon/provider'
import { type NodeGroup, nodeGroupKind, ownNames, platformLabels } from '@tenon/provider-clever-cloud'
import { type HttpResponse, oneChunk, readText, type Transport } from '@tenon/runtime'
import { providerIdOf } from '../cloud/clever-cloud.ts'
import type { PlantedContext } from './planted-bug.ts'

const nodeClaims = '/apis/karpenter.sh/v1/nodeclaims'
const nodeGroups = '/apis/api.clever-cloud.com/v1/nodegroups'

function answer(status: number, body: object): HttpResponse {
  return {
    status,
    headers: { 'content-type': 'application/json' },
    body: oneChunk(JSON.stringify(body)),
  }
}

/** A NodeGroup with the labels of a claim is treated as owned by the claim. */
export function adoptsByLabel(inner: Transport, { world }: PlantedContext): Transport {
  const owned = (group: NodeGroup): NodeGroup => {
    const name = ownValue(group.metadata.labels, ownNames.nodeClaim) ?? ''
    const claim = world.claims().find(({ metadata }) => metadata.name === name)
    if (claim === undefined || (group.metadata.ownerReferences ?? []).length > 0) return group
    const { uid = '' } = claim.metadata
    const ownerReferences = [{ apiVersion: 'karpenter.sh/v1', kind: 'NodeClaim', name, uid }]
    return { ...group, metadata: { ...group.metadata, ownerReferences } }
  }
  return {
    async send(request, signal) {
      const response = await inner.send(request, signal)
      const isOne = request.method === 'GET' && request.path.startsWith(`${nodeGroups}/`)
      if (!isOne || response.status !== 200) return response
      return answer(200, owned(JSON.parse(await readText(response.body)) as NodeGroup))
    },
  }
}

/** Rejections of the platform are not reported to the core. */
export function forgetsRefusals(inner: CloudProvider): CloudProvider {
  return decorated(inner, {
    onOfferingNews: (listener) => {
      inner.onOfferingNews?.((news) => {
        if (news.kind !== 'refused') listener(news)
      })
    },
    create: async (claim, signal, types) => {
      try {
        return await inner.create(claim, signal, types)
      } catch (error) {
        if (!isProviderError(error, 'insufficientCapacity')) throw error
        throw new ProviderError('other', error.message, { cause: error })
      }
    },
  })
}

/** Every node of a managed group gets the provider ID of its group immediately. */
export function stampsEveryNode(inner: Transport, { world }: PlantedContext): Transport {
  const { local } = world.cluster.server
  const stamp = ({ metadata: { name, labels }, spec }: Node): void => {
    const group = local.get(nodeGroupKind, undefined, ownValue(labels, platformLabels.nodeGroup) ?? '')
    const isManaged = ownValue(group?.metadata.labels, ownNames.managed) === 'true'
    if (group === undefined || !isManaged || (spec?.providerID ?? '') !== '') return
    const request = {
      method: 'PATCH',
      path: `/api/v1/nodes/${name}`,
      headers: { 'content-type': 'application/merge-patch+json' },
      body: JSON.stringify({ spec: { providerID: providerIdOf(group.metadata.name) } }),
    } as const
    // Not while the node is being written.
    world.clock.after(0, () => {
      inner.send(request).catch(() => undefined)
    })
  }
  local.subscribe<Node>(kinds.node, { added: stamp })
  return inner
}

/** The sweep uses a list of claims that is two sweeps old, and does not read the claim itself. */
export function deletesUnconfirmed(inner: Transport): Transport {
  const lists: string[] = []
  return {
    async send(request, signal) {
      const [path = '', query = ''] = request.path.split('?')
      if (request.method === 'GET' && path.startsWith(`${nodeClaims}/`))
        return answer(404, {
          kind: 'Status',
          apiVersion: 'v1',
          metadata: {},
          status: 'Failure',
          reason: 'NotFound',
          code: 404,
        })
      const response = await inner.send(request, signal)
      const isList = request.method === 'GET' && path === nodeClaims && !query.includes('watch=true')
      if (!isList || response.status !== 200) return response
      const text = await readText(response.body)
      lists.push(text)
      const [old = text] = lists.slice(-3)
      return answer(200, JSON.parse(old) as KubeObject)
    },
  }
}
