/** What Tenon knows of Harbour Cloud before it asks it: `tenon controller --provider ./src/module.ts`. */
import {
  type ProviderDependencies,
  type ProviderModule,
  type ProviderOption,
  ProviderSettingError,
} from '@tenon/provider'
import { Catalogue, cpusLabel, instanceTypeOf } from './catalogue.ts'
import { CloudApi, overHttp } from './cloud-api.ts'
import { harbourNodeClass, harbourNodeClassCrd } from './node-class.ts'
import { HarbourProvider } from './provider.ts'
import { sizes, SimulatedCloud } from './simulated-cloud.ts'
import { registerNode } from './simulated-kubelet.ts'

const options: readonly ProviderOption[] = [
  {
    flag: 'harbour-url',
    variable: 'HARBOUR_URL',
    kind: 'text',
    fallback: '',
    takes: 'URL',
    meaning: 'URL of the API of the cloud; `simulated` plays the cloud in this process.',
  },
  {
    flag: 'harbour-cluster',
    variable: 'HARBOUR_CLUSTER',
    kind: 'name',
    fallback: 'default',
    takes: 'NAME',
    meaning: 'Tells the servers of this cluster from those of others in the same account.',
  },
]

export const provider: ProviderModule = {
  name: 'harbour',
  title: 'Harbour Cloud',
  nodeClasses: [harbourNodeClass],
  options,
  validateOptions: [],
  formerNodeClasses: {},
  crds: () => Promise.resolve([harbourNodeClassCrd]),
  open,
  // `tenon validate` asks no cloud: it goes by the list of sizes that this module was written with.
  offline: () => {
    const types = sizes.map((size) => instanceTypeOf(size, () => undefined))
    return Promise.resolve({
      rules: { wellKnownLabels: [cpusLabel] },
      typesOf: () => ({ offered: types, known: types }),
      findingsOf: () => [],
      problems: [],
    })
  },
}

async function open(dependencies: ProviderDependencies): Promise<HarbourProvider> {
  const { env, kube, registry, clock, logger, fenced, server, userAgent } = dependencies
  const url = env['HARBOUR_URL'] ?? ''
  if (url === '') throw new ProviderSettingError('give the URL of the cloud', 'HARBOUR_URL')
  // Secrets come by the environment, and not as options that `ps` shows.
  const token = env['HARBOUR_TOKEN'] ?? ''
  if (token === '' && url !== 'simulated')
    throw new ProviderSettingError('give a token of the cloud', 'HARBOUR_TOKEN')
  const transport = url === 'simulated' ? simulated(dependencies) : overHttp(url)
  const api = new CloudApi(fenced(transport), token, userAgent)
  return await Promise.resolve(
    new HarbourProvider({
      api,
      kube,
      nodeClasses: registry.cache(harbourNodeClass),
      catalogue: new Catalogue(api, clock),
      cluster: env['HARBOUR_CLUSTER'] ?? 'default',
      join: { server, token: env['HARBOUR_JOIN_TOKEN'] ?? '' },
      clock,
      logger,
    }),
  )
}

/** The cloud in this process, with servers that register as Nodes. They are gone when the process ends. */
function simulated({ kube, clock, logger }: ProviderDependencies): SimulatedCloud {
  return new SimulatedCloud(clock, (server, script) => {
    registerNode(kube, clock, server, script).catch((error: unknown) => {
      logger.error('a simulated server did not join', { server: server.name, error })
    })
  })
}
