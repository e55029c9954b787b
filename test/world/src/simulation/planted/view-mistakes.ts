/** Bugs that have an effect if views are wrong, clouds lie or kubelets misbehave. */
import { gunzipSync, gzipSync } from 'node:zlib'
import { karpenterKinds, kinds, type KubeObject, type Node, type Pod } from '@tenon/api'
import type { Operator } from '@tenon/operator'
import {
  DocumentStream,
  type HttpRequest,
  type HttpResponse,
  oneChunk,
  readText,
  type Transport,
} from '@tenon/runtime'
import type { World } from '../../world.ts'
import { isRefusedByKubelets, kubeletLabels } from '../faults/instance-faults.ts'
import type { PlantedBug, PlantedContext } from './planted-bug.ts'
import { seesEveryNodeFree } from './gang-mistakes.ts'
import { pluralOf } from './sight.ts'

const minute = 60_000
const claimLabel = 'exoscale.com/node-claim'
const plainPath = ({ path }: HttpRequest): string => path.split('?')[0] ?? ''
const isCreation = (request: HttpRequest): boolean =>
  request.method === 'POST' && plainPath(request).endsWith('/instance')

async function changed(response: HttpResponse, change: (body: object) => object): Promise<HttpResponse> {
  const text = await readText(response.body)
  return {
    ...response,
    body: oneChunk(response.status < 300 ? JSON.stringify(change(JSON.parse(text) as object)) : text),
  }
}

function answer(body: object): HttpResponse {
  return {
    status: 200,
    headers: { 'content-type': 'application/json' },
    body: oneChunk(JSON.stringify(body)),
  }
}

/** Operations do not name what they created. */
export function forgetsWhatWasMade(inner: Transport): Transport {
  return {
    async send(request, signal) {
      const response = await inner.send(request, signal)
      const isNamed = isCreation(request) || plainPath(request).includes('/operation/')
      return isNamed ? await changed(response, (body) => ({ ...body, reference: undefined })) : response
    },
  }
}

/** Deletions of surplus instances are dropped, with a successful response. */
export function keepsSurplus(inner: Transport, { world }: PlantedContext): Transport {
  return {
    async send(request, signal) {
      const id =
        request.method === 'DELETE' ? /\/instance\/([0-9a-f-]{36})$/.exec(plainPath(request))?.[1] : undefined
      const owner = world.cluster.cloud.instances().find((each) => each.id === id)?.labels[claimLabel]
      const claim = world.claims().find(({ metadata }) => metadata.name === owner)
      const isSurplus = claim !== undefined && claim.metadata.deletionTimestamp === undefined
      if (id === undefined || !isSurplus) return await inner.send(request, signal)
      return answer({ id: '00000000-0000-4000-8000-000000000000', state: 'success', reference: { id } })
    },
  }
}

/** The pods of a node come from the cache, also right before the node is removed. */
export function skipsFreshLooks(): Pick<PlantedBug, 'api' | 'operator'> {
  const operators = new WeakMap<World, Operator>()
  return {
    operator: (operator, { world }) => {
      operators.set(world, operator)
    },
    api: (inner, { world }) => ({
      async send(request, signal) {
        const name =
          request.method === 'GET' && pluralOf(request) === 'pods'
            ? /spec\.nodeName=([^&]+)/.exec(decodeURIComponent(request.path))?.[1]
            : undefined
        const state = operators.get(world)?.state
        if (name === undefined || state === undefined) return await inner.send(request, signal)
        const metadata = { resourceVersion: '1' }
        return answer({ apiVersion: 'v1', kind: 'PodList', metadata, items: state.podsOn(name) })
      },
    }),
  }
}

/** The identity of the cluster is not checked. */
export function ignoresIdentity({ identity }: Operator): void {
  identity.mayRemove = () => Promise.resolve(true)
  identity.refusalOfSweep = () => undefined
}

/** Rejected creations are not looked for during some minutes. */
export function believesRefusals(inner: Transport, { world }: PlantedContext): Transport {
  const refused = new Map<string, number>()
  return {
    async send(request, signal) {
      const response = await inner.send(request, signal)
      if (isCreation(request) && response.status >= 300) {
        const { labels } = JSON.parse(String(request.body)) as {
          readonly labels?: Readonly<Record<string, string>>
        }
        refused.set(labels?.[claimLabel] ?? '', world.clock.monotonic() + 5 * minute)
      }
      if (request.method !== 'GET' || !plainPath(request).endsWith('/instance')) return response
      return await changed(response, (body) => {
        const { instances = [] } = body as {
          readonly instances?: readonly { readonly labels?: Readonly<Record<string, string>> }[]
        }
        const isHidden = (name = ''): boolean => (refused.get(name) ?? 0) > world.clock.monotonic()
        return { ...body, instances: instances.filter(({ labels }) => !isHidden(labels?.[claimLabel])) }
      })
    },
  }
}

/** Kubelets get all labels, including those that they may not set. */
export function tellsKubeletsAll(inner: Transport, { world }: PlantedContext): Transport {
  return {
    async send(request, signal) {
      const hasLabels = world.cluster.server.local
        .list(karpenterKinds.nodePool)
        .some(({ spec }) => Object.keys(spec.template.metadata?.labels ?? {}).some(isRefusedByKubelets))
      if (!isCreation(request) || !hasLabels) return await inner.send(request, signal)
      const body = JSON.parse(String(request.body)) as { readonly 'user-data': string }
      const text = gunzipSync(Buffer.from(body['user-data'], 'base64')).toString()
      const [key = ''] = Object.keys(kubeletLabels)
      const told = text.replace(/^(\[.*node-labels\])$/m, `$1\n"${key}" = ""`)
      const userData = gzipSync(told).toString('base64')
      return await inner.send(
        { ...request, body: JSON.stringify({ ...body, 'user-data': userData }) },
        signal,
      )
    },
  }
}

/** Labels that kubelets may not set are never set. */
export function leavesLabelsOut(inner: Transport): Transport {
  return {
    async send(request, signal) {
      if (request.method !== 'PATCH' || pluralOf(request) !== 'nodes')
        return await inner.send(request, signal)
      const patch = JSON.parse(String(request.body)) as { readonly metadata?: { readonly labels?: object } }
      const { labels } = patch.metadata ?? {}
      if (labels === undefined) return await inner.send(request, signal)
      const left = Object.fromEntries(Object.entries(labels).filter(([key]) => !isRefusedByKubelets(key)))
      const body = JSON.stringify({ ...patch, metadata: { ...patch.metadata, labels: left } })
      return await inner.send({ ...request, body }, signal)
    },
  }
}

const twins = (world: World, name: string): readonly Node[] => {
  const node = world.cluster.server.local.get(kinds.node, undefined, name)
  return node === undefined
    ? []
    : world.nodes().filter(({ spec }) => spec?.providerID === node.spec?.providerID)
}

/** Deletions of the old Node of a renamed kubelet are dropped while its claim exists. */
export function keepsTwins(inner: Transport, { world }: PlantedContext): Transport {
  return {
    async send(request, signal) {
      const name =
        request.method === 'DELETE' && pluralOf(request) === 'nodes'
          ? plainPath(request).split('/').at(-1)
          : undefined
      const node =
        name === undefined || twins(world, name).length < 2
          ? undefined
          : world.cluster.server.local.get(kinds.node, undefined, name)
      const claim = world.claims().find(({ status }) => status?.providerID === node?.spec?.providerID)
      if (node === undefined || claim?.metadata.deletionTimestamp !== undefined)
        return await inner.send(request, signal)
      return answer(node)
    },
  }
}

/** The pods of an instance with two Nodes are invisible. */
export const overlooksPodsOfTwins = {
  api: (inner: Transport, { world }: PlantedContext): Transport => {
    const blind = seesEveryNodeFree(inner)
    return {
      async send(request, signal) {
        const name = /spec\.nodeName=([^&]+)/.exec(decodeURIComponent(request.path))?.[1]
        const isBlind = name !== undefined && twins(world, name).length > 1
        return await (isBlind ? blind : inner).send(request, signal)
      },
    }
  },
  operator: ({ state }: Operator, { world }: PlantedContext): void => {
    const podsOn = state.podsOn.bind(state)
    state.podsOn = (name) => (twins(world, name).length > 1 ? [] : podsOn(name))
  },
}

interface Row {
  readonly type: string
  readonly object: KubeObject
}

/** An object that a watch reported as deleted stays invisible, whatever lists and later events say. */
export function forgetsForGood(inner: Transport): Transport {
  const gone = new Set<string>()
  const isThere = ({ metadata }: KubeObject): boolean => !gone.has(metadata.uid ?? '')
  async function* left(rows: AsyncIterable<readonly Row[]>): AsyncGenerator<readonly Row[]> {
    for await (const chunk of rows) {
      for (const { type, object } of chunk) if (type === 'DELETED') gone.add(object.metadata.uid ?? '')
      yield chunk.filter(({ type, object }) => (type !== 'ADDED' && type !== 'MODIFIED') || isThere(object))
    }
  }
  return {
    async send(request, signal) {
      const response = await inner.send(request, signal)
      if (request.method !== 'GET' || response.status !== 200) return response
      const { body } = response
      if (body instanceof DocumentStream)
        return { ...response, body: body.through((rows) => left(rows as AsyncIterable<readonly Row[]>)) }
      if (request.path.includes('watch=true') || pluralOf(request) !== 'pods') return response
      return await changed(response, (list) => {
        const { items } = list as { readonly items?: readonly KubeObject[] }
        return items === undefined ? list : { ...list, items: items.filter(isThere) }
      })
    },
  }
}

/** The scheduler's rejection messages are invisible. */
export const withoutRefusals = (object: KubeObject): KubeObject => {
  const pod = object as Pod
  const conditions = pod.status?.conditions?.map((condition) =>
    condition.type === 'PodScheduled' ? { ...condition, message: '' } : condition,
  )
  const deaf: Pod = { ...pod, status: { ...pod.status, ...(conditions && { conditions }) } }
  return deaf
}
