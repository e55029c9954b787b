import { karpenterKinds } from '@tenon/api'
import { type ContractWorld, examineProvider, mortalProcess } from '@tenon/provider/contract-suite'
import { providerIdOf } from './identifiers.ts'
import { exoscaleNodeClassKind } from './nodeclass/types.ts'
import { aClaim, aGround, aNodeClass, aPool, aWorld } from './testing/world.test-support.ts'

const creation = /^\/instance$/

async function open(): Promise<ContractWorld> {
  const ground = aGround()
  const { clock, cloud, kube } = ground
  kube.put(exoscaleNodeClassKind, aNodeClass())
  const startProcess: ContractWorld['startProcess'] = (death) => {
    const { transport, client, isDead } = mortalProcess(death)
    const reached = { ...ground, transport: transport(cloud), client: client(kube) }
    return { provider: aWorld({}, reached).provider, isDead }
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
    instancesOf: (name) =>
      [...cloud.instances.values()]
        .filter(({ labels, state }) => labels['exoscale.com/node-claim'] === name && state !== 'destroying')
        .map(({ id }) => providerIdOf(id)),
    addForeignInstance: () => {
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

examineProvider('exoscale', open)
