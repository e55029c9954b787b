import { karpenterKinds, type KubeObject, type ResourceType } from '@tenon/api'
import type { KubeClient, ObjectKey, PatchOptions } from '@tenon/kube'
import { type ContractWorld, type Death, examineProvider } from '@tenon/provider/contract-suite'
import type { Transport } from '@tenon/runtime'
import { providerIdOf } from './identifiers.ts'
import { exoscaleNodeClassKind } from './nodeclass/types.ts'
import { aClaim, aGround, aNodeClass, aPool, aWorld, type Ground } from './testing/world.test-support.ts'

const creation = /^\/instance$/

async function open(): Promise<ContractWorld> {
  const ground = aGround()
  const { clock, cloud, kube } = ground
  kube.put(exoscaleNodeClassKind, aNodeClass())
  const startProcess: ContractWorld['startProcess'] = (death) => {
    const { transport, client, isDead } = mortal(ground, death)
    return { provider: aWorld({}, { ...ground, transport, client }).provider, isDead }
  }
  return await Promise.resolve({
    provider: startProcess().provider,
    pool: aPool(),
    unknownProviderID: 'exoscale://99999999-0000-4000-8000-000000000000',
    malformedProviderIDs: (existing) => [
      '',
      'exoscale://',
      'exoscale://not-a-uuid',
      existing.replace('exoscale', 'aws'),
      existing.replace(/[0-9a-f-]+$/, (id) => `${id}0`),
      `exoscale:///${existing.slice('exoscale://'.length)}`,
    ],
    startProcess,
    advanceUntil: (done, limitMs) => clock.advanceUntil(done, limitMs),
    createClaim: (name) => kube.put(karpenterKinds.nodeClaim, aClaim(name)),
    storeClaim: (claim) => kube.put(karpenterKinds.nodeClaim, claim),
    machinesOf: (name) =>
      [...cloud.instances.values()]
        .filter(({ labels, state }) => labels['exoscale.com/node-claim'] === name && state !== 'destroying')
        .map(({ id }) => providerIdOf(id)),
    addForeignMachine: () => {
      const id = cloud.nextId()
      const labels = {
        'exoscale.com/managed-by': 'karpenter',
        'exoscale.com/cluster-id': 'other',
        'exoscale.com/node-claim': 'claim-0',
      }
      const parts = { 'security-groups': [], 'anti-affinity-groups': [], 'private-networks': [] }
      cloud.instances.set(id, { id, name: 'foreign', state: 'running', labels, ...parts })
      return providerIdOf(id)
    },
    loseNextAnswer: () => {
      cloud.disturb('POST', creation, 'lostReply')
    },
    obstruct: async (obstacle) => {
      if (obstacle === 'nodeClassMissing') await kube.delete(exoscaleNodeClassKind, { name: 'standard' })
      else if (obstacle === 'soldOut') {
        cloud.creationFailures = Array.from({ length: 20 }, () => ({ reason: 'unavailable' }))
      } else if (obstacle === 'refused') cloud.disturb('POST', creation, { status: 400 })
      else if (obstacle === 'throttled') {
        cloud.disturb('POST', creation, ...Array.from({ length: 20 }, () => ({ status: 429 })))
      } else {
        const [ready] = aNodeClass().status?.conditions ?? []
        const conditions =
          ready === undefined ? [] : [{ ...ready, status: 'False', message: 'not yet' } as const]
        kube.put(exoscaleNodeClassKind, { ...aNodeClass(), status: { conditions } })
      }
      return true
    },
    causeDrift: () => {
      const templateID = cloud.nextId()
      cloud.templates.add(templateID)
      kube.put(exoscaleNodeClassKind, aNodeClass({ templateID }))
      return true
    },
  })
}

/** The cloud and the API server as a process sees them that may die at one of its writes. */
function mortal(
  { cloud, kube }: Ground,
  death?: Death,
): { readonly transport: Transport; readonly client: KubeClient; readonly isDead: () => boolean } {
  let writes = 0
  let isDead = false
  const forever = async (): Promise<never> => await new Promise<never>(() => undefined)
  const write = async <T>(act: () => Promise<T>): Promise<T> => {
    if (isDead) return await forever()
    const isLast = ++writes === death?.atWrite
    isDead = isLast
    if (isLast && death?.when === 'before') return await forever()
    const answer = await act()
    return isLast ? await forever() : answer
  }
  const client: KubeClient = {
    get: (type, key) => kube.get(type, key),
    list: (type, options) => kube.list(type, options),
    create: (type, object) => write(() => kube.create(type, object)),
    patch: <T extends KubeObject>(
      type: ResourceType<T>,
      key: ObjectKey,
      patch: object,
      options?: PatchOptions,
    ) => write(() => kube.patch(type, key, patch, options)),
    delete: (type, key, options) => write(() => kube.delete(type, key, options)),
    evict: () => kube.evict(),
    serverVersion: () => kube.serverVersion(),
  }
  const transport: Transport = {
    send: (request, signal) =>
      request.method === 'GET' ? cloud.send(request, signal) : write(() => cloud.send(request, signal)),
  }
  return { transport, client, isDead: () => isDead }
}

examineProvider('exoscale', open)
