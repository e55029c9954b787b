/** The simulated Exoscale in a simulation. */
import { kinds, type KubeObject } from '@tenon/api'
import {
  connectExoscale,
  type ExoscaleClient,
  exoscaleNodeClassKind,
  openExoscale,
  pricesByType,
} from '@tenon/provider-exoscale'
import { exoscaleOptions, type World } from '../../world.ts'
import { playCloudFaults } from '../faults/cloud-faults.ts'
import type { CloudDeps, CloudInstance, Wares, WorldCloud } from './world-cloud.ts'
import type { Clock, Logger, Random } from '@tenon/runtime'

const claimLabel = 'exoscale.com/node-claim'
const alive: ReadonlySet<string> = new Set(['starting', 'running', 'stopping', 'stopped', 'error'])
const version = '1.34.1'

function nodeClass(name: string, spec: object): KubeObject {
  const object = {
    apiVersion: 'karpenter.exoscale.com/v1',
    kind: 'ExoscaleNodeClass',
    metadata: { name },
    spec,
  }
  return object
}

const waresIn = (world: World): Wares => ({
  nodeClassKind: exoscaleNodeClassKind,
  nodeClass: (name) =>
    name === 'gpu'
      ? nodeClass(name, { imageTemplateSelector: { variant: 'nvidia' }, diskSize: 100 })
      : nodeClass(name, { imageTemplateSelector: {}, diskSize: 50 }),
  types: ['standard.medium', 'standard.large', 'standard.extra-large', 'standard.huge'],
  typesInLarge: 3,
  staticType: 'standard.large',
  choosyTypes: ['standard.large', 'standard.extra-large'],
  gpuTypes: ['gpua30.small', 'gpua30.medium'],
  drift: (person) => {
    if (person.dice.chance(0.5)) {
      person.act('publish template', () => {
        world.cluster.cloud.publishTemplate({ version, variant: 'standard' })
      })
      return
    }
    const diskSize = person.dice.oneOf([50, 60, 80])
    person.patch(exoscaleNodeClassKind, 'standard', { spec: { diskSize } })
  },
})

/** The cloud of a world with the provider `exoscale`. */
export function exoscaleIn(world: World, deps: CloudDeps): WorldCloud {
  const { cloud } = world.cluster
  let administrator: CloudAdministrator | undefined
  return {
    wares: waresIn(world),
    prices: pricesByType('EUR'),
    openProvider: async ({ cloud: transport, ...parts }) =>
      await openExoscale({
        ...parts,
        options: exoscaleOptions(undefined, cloud.settings.gpuDriver),
        connect: () => transport,
      }),
    instances: () =>
      cloud.instances().map(
        ({ id, labels, state }): CloudInstance => ({
          id,
          providerId: `exoscale://${id}`,
          claim: labels[claimLabel] ?? '',
          state,
          isAlive: alive.has(state),
        }),
      ),
    demandOf({ method, path, body }) {
      if (method === 'POST' && (path.split('?')[0] ?? '').endsWith('/instance')) {
        const { labels } = JSON.parse(String(body)) as { readonly labels?: Readonly<Record<string, string>> }
        return { launchFor: labels?.[claimLabel] ?? '' }
      }
      const id = method === 'DELETE' ? /\/instance\/([0-9a-f-]{36})$/.exec(path)?.[1] : undefined
      return id === undefined ? undefined : { end: `exoscale://${id}` }
    },
    isForeign: () => false,
    loseOne(random) {
      const running = cloud.instances().filter(({ state }) => state === 'running')
      const victim = running[random.uint32() % Math.max(1, running.length)]
      if (victim !== undefined) void administrator?.deleteInstance(victim.id)
      return victim?.name
    },
    playFaults(faults) {
      administrator = new CloudAdministrator(world, deps)
      return playCloudFaults(world, faults)
    },
    leftovers() {
      const tokens = world.cluster.server.local
        .list(kinds.secret, { namespace: 'kube-system' })
        .filter(({ metadata }) => metadata.labels?.['exoscale.com/token-provider'] !== undefined)
      const names = tokens.slice(0, 5).map(({ metadata }) => metadata.name)
      return tokens.length === 0
        ? []
        : [`${tokens.length} bootstrap token(s) left: ${names.join(', ')}${tokens.length > 5 ? ', …' : ''}`]
    },
  }
}

/** Deletes instances without the controller's knowledge. */
class CloudAdministrator {
  readonly #api: Promise<ExoscaleClient>

  constructor(
    world: World,
    deps: { readonly clock: Clock; readonly random: Random; readonly logger: Logger },
  ) {
    this.#api = connectExoscale({
      ...deps,
      options: exoscaleOptions(),
      connect: () => ({ send: world.cluster.cloud.handle }),
    })
  }

  /** Ignores an instance that is being deleted already. */
  async deleteInstance(id: string): Promise<void> {
    const api = await this.#api
    await api.deleteInstance(id).catch(() => undefined)
  }
}
