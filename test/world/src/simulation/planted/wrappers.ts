/** Ports with planted bugs. */
import {
  disruptedTaint,
  karpenterKinds,
  kinds,
  type KubeObject,
  terminationFinalizer,
  unregisteredTaint,
} from '@tenon/api'
import type { SchedulingDecider } from '@tenon/operator'
import { type CloudProvider, decorated, isProviderError } from '@tenon/provider'
import { type HttpResponse, type Logger, oneChunk, readText, type Transport } from '@tenon/runtime'
import type { World } from '../../world.ts'
import type { PlantedContext } from './planted-bug.ts'
import { pluralOf } from './sight.ts'

const minute = 60_000

interface Patch {
  readonly metadata?: { readonly finalizers?: readonly string[] | null }
  readonly spec?: { readonly taints?: readonly { readonly key: string }[] }
}

function answer(body: object): HttpResponse {
  return {
    status: 200,
    headers: { 'content-type': 'application/json' },
    body: oneChunk(JSON.stringify(body)),
  }
}

const nameIn = (path: string): string => (path.split('?')[0] ?? '').split('/').at(-1) ?? ''

/** The first write of a finalizer is confirmed at once and made later. */
export function finalizerLate(inner: Transport, { world }: PlantedContext): Transport {
  return {
    async send(request, signal) {
      if (request.method !== 'PATCH' || pluralOf(request) !== 'nodeclaims')
        return await inner.send(request, signal)
      const { metadata } = JSON.parse(String(request.body)) as Patch
      const finalizers = metadata?.finalizers ?? []
      const claim = world.cluster.server.local.get(karpenterKinds.nodeClaim, undefined, nameIn(request.path))
      const isFirst =
        finalizers.includes(terminationFinalizer) &&
        claim !== undefined &&
        !(claim.metadata.finalizers ?? []).includes(terminationFinalizer)
      if (!isFirst) return await inner.send(request, signal)
      world.clock.after(minute, () => {
        const body = JSON.stringify({ metadata: { finalizers } })
        inner.send({ ...request, body }).catch(() => undefined)
      })
      return answer({ ...claim, metadata: { ...claim.metadata, finalizers } })
    },
  }
}

/** Evictions are sent as deletions, which ignore budgets. */
export function evictsByDeleting(inner: Transport): Transport {
  return {
    async send(request, signal) {
      const match = request.method === 'POST' ? /^(.*\/pods\/[^/]+)\/eviction/.exec(request.path) : null
      if (match === null) return await inner.send(request, signal)
      const { body: _, ...rest } = request
      return await inner.send({ ...rest, method: 'DELETE', path: match[1] ?? '' }, signal)
    },
  }
}

/** Writes of a node keep the unregistered taint. */
export function keepsUnregisteredTaint(inner: Transport): Transport {
  return {
    async send(request, signal) {
      if (request.method !== 'PATCH' || pluralOf(request) !== 'nodes')
        return await inner.send(request, signal)
      const patch = JSON.parse(String(request.body)) as Patch
      const taints = patch.spec?.taints
      if (taints === undefined || taints.some(({ key }) => key === unregisteredTaint.key))
        return await inner.send(request, signal)
      const body = JSON.stringify({
        ...patch,
        spec: { ...patch.spec, taints: [...taints, unregisteredTaint] },
      })
      return await inner.send({ ...request, body }, signal)
    },
  }
}

/** Deletions of Secrets are confirmed but not made. */
export function keepsBootstrapTokens(inner: Transport): Transport {
  return {
    async send(request, signal) {
      if (request.method !== 'DELETE' || pluralOf(request) !== 'secrets')
        return await inner.send(request, signal)
      return answer({ apiVersion: 'v1', kind: 'Status', metadata: {}, status: 'Success' })
    },
  }
}

/** Deletions of orphaned instances are confirmed but not made. */
export function keepsOrphans(inner: Transport, { world }: PlantedContext): Transport {
  return {
    async send(request, signal) {
      const id =
        request.method === 'DELETE' ? /\/instance\/([0-9a-f-]{36})$/.exec(request.path)?.[1] : undefined
      if (id === undefined || isOwned(world, id)) return await inner.send(request, signal)
      return answer({ id: '00000000-0000-4000-8000-000000000000', state: 'success', reference: { id } })
    },
  }
}

function isOwned(world: World, id: string): boolean {
  const instance = world.cluster.cloud.instances().find((each) => each.id === id)
  const name = instance?.labels['exoscale.com/node-claim'] ?? ''
  return world
    .claims()
    .some(({ metadata, status }) => metadata.name === name || status?.providerID === `exoscale://${id}`)
}

/** Lists omit instances that their claim does not know yet, so that none is ever adopted. */
export function hidesUnknownInstances(inner: Transport, { world }: PlantedContext): Transport {
  return {
    async send(request, signal) {
      const response = await inner.send(request, signal)
      const isList = request.method === 'GET' && (request.path.split('?')[0] ?? '').endsWith('/instance')
      if (!isList || response.status !== 200) return response
      const { instances, ...rest } = JSON.parse(await readText(response.body)) as {
        readonly instances: readonly { readonly labels?: Readonly<Record<string, string>> }[]
      }
      const unknown = new Set(
        world
          .claims()
          .filter(({ status }) => (status?.providerID ?? '') === '')
          .map(({ metadata }) => metadata.name),
      )
      const shown = instances.filter(({ labels }) => !unknown.has(labels?.['exoscale.com/node-claim'] ?? ''))
      return answer({ ...rest, instances: shown })
    },
  }
}

/** Only the first attempt to delete an instance reaches the cloud. */
export function deletesOnce(inner: CloudProvider): CloudProvider {
  const asked = new Set<string>()
  return decorated(inner, {
    delete: async (claim, signal) => {
      const id = claim.status?.providerID ?? ''
      if (asked.has(id)) {
        await inner.get(id, signal)
        return
      }
      asked.add(id)
      await inner.delete(claim, signal)
    },
  })
}

/** Deleting the instance of a claim also deletes that of another claim. */
export function takesNeighbours(inner: CloudProvider): CloudProvider {
  return decorated(inner, {
    delete: async (claim, signal) => {
      const own = claim.status?.providerID
      const instances = await inner.list(signal)
      const other = instances.find(({ providerID, deleting }) => providerID !== own && !deleting)
      if (other !== undefined)
        await inner.delete({ ...claim, status: { ...claim.status, providerID: other.providerID } }, signal)
      await inner.delete(claim, signal)
    },
  })
}

/** An instance counts as gone as soon as its deletion was requested, whatever the response. */
export function takesAskedForGone(inner: CloudProvider): CloudProvider {
  const asked = new Set<string>()
  return decorated(inner, {
    get: async (providerID, signal) => await inner.get(asked.has(providerID) ? nobody : providerID, signal),
    delete: async (claim, signal) => {
      asked.add(claim.status?.providerID ?? '')
      await inner.delete(claim, signal).catch((error: unknown) => {
        if (isProviderError(error, 'nodeClaimNotFound')) throw error
      })
      return await inner.delete({ ...claim, status: { ...claim.status, providerID: nobody } }, signal)
    },
  })
}

const nobody = 'exoscale://00000000-0000-4000-8000-000000000000'

/** Every second decision repeats the previous one. */
export function reusesOldDecisions(inner: SchedulingDecider): SchedulingDecider {
  let before: Awaited<ReturnType<SchedulingDecider['decide']>> | undefined
  return {
    async decide(input, options) {
      const old = before
      before = undefined
      if (old !== undefined && old.claims.length > 0) return old
      before = await inner.decide(input, options)
      return before
    },
    examine: (input, question, options) => inner.examine(input, question, options),
    close: () => inner.close(),
  }
}

/** Logs secrets with its launches. */
export function talkative(inner: Logger, { world }: PlantedContext): Logger {
  return {
    debug: (message, fields) => inner.debug(message, fields),
    info: (message, fields) => {
      const [, credential] = world.secrets()
      inner.info(message, message === 'launched nodeclaim' ? { ...fields, credential } : fields)
    },
    warn: (message, fields) => inner.warn(message, fields),
    error: (message, fields) => inner.error(message, fields),
    with: (fields) => talkative(inner.with(fields), { world }),
  }
}

/** Removals of the disrupted taint are confirmed but not made. */
export function keepsDisruptedTaint(inner: Transport, { world }: PlantedContext): Transport {
  return {
    async send(request, signal) {
      if (request.method !== 'PATCH' || pluralOf(request) !== 'nodes')
        return await inner.send(request, signal)
      const taints = (JSON.parse(String(request.body)) as Patch).spec?.taints
      const node = world.cluster.server.local.get(kinds.node, undefined, nameIn(request.path))
      const isMarked = (node?.spec?.taints ?? []).some(({ key }) => key === disruptedTaint.key)
      const isTakenOff = taints !== undefined && !taints.some(({ key }) => key === disruptedTaint.key)
      if (node === undefined || !isMarked || !isTakenOff) return await inner.send(request, signal)
      return answer({ ...node, spec: { ...node.spec, taints } })
    },
  }
}

/** Replacements are created twice, with different names. */
export function replacesTwice(inner: Transport): Transport {
  return {
    async send(request, signal) {
      const isReplacement =
        request.method === 'POST' &&
        pluralOf(request) === 'nodeclaims' &&
        String(request.body).includes('tenon.sh/replaces')
      if (!isReplacement) return await inner.send(request, signal)
      const claim = JSON.parse(String(request.body)) as KubeObject
      const other = { ...claim, metadata: { ...claim.metadata, name: `${claim.metadata.name}-2` } }
      await inner.send({ ...request, body: JSON.stringify(other) }, signal)
      return await inner.send(request, signal)
    },
  }
}

/** Releases of the lease are confirmed but not made. */
export function keepsLease(inner: Transport, { world }: PlantedContext): Transport {
  return {
    async send(request, signal) {
      const isRelease =
        request.method === 'PATCH' &&
        pluralOf(request) === 'leases' &&
        String(request.body).includes('"holderIdentity":""')
      if (!isRelease) return await inner.send(request, signal)
      const lease = world.cluster.server.local.get(kinds.lease, 'kube-system', nameIn(request.path))
      return answer({ ...lease })
    },
  }
}

/** Some minutes after the start, refreshed prices are inverted. */
export function invertsPrices(inner: CloudProvider, { world }: PlantedContext): CloudProvider {
  return decorated(inner, {
    getInstanceTypes: async (pool, signal) => {
      const types = await inner.getInstanceTypes(pool, signal)
      if (world.clock.monotonic() < refreshedMs) return types
      return types.map((type) => ({
        ...type,
        offerings: type.offerings.map((offering) => ({
          ...offering,
          pricePerHour: 1 / (offering.pricePerHour ?? 1),
        })),
      }))
    },
  })
}

const refreshedMs = 4 * minute
