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
import { sizes } from './simulated-cloud.ts'

const options: readonly ProviderOption[] = [
  {
    flag: 'harbour-url',
    variable: 'HARBOUR_URL',
    kind: 'text',
    fallback: '',
    takes: 'URL',
    meaning: 'URL of the API of the cloud.',
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
  simulator: async () => (await import('./simulator.ts')).simulator,
}

async function open(dependencies: ProviderDependencies): Promise<HarbourProvider> {
  const { env, kubernetes, cloud, runtime } = dependencies
  const { clock, logger } = runtime
  // Secrets come by the environment, and not as options that `ps` shows.
  const { HARBOUR_URL: url = '', HARBOUR_TOKEN: token = '', HARBOUR_JOIN_TOKEN: joinToken = '' } = env
  if (url === '') throw new ProviderSettingError('give the URL of the cloud', 'HARBOUR_URL')
  if (token === '') throw new ProviderSettingError('give a token of the cloud', 'HARBOUR_TOKEN')
  const api = new CloudApi(cloud.fenced(overHttp(url)), token, cloud.userAgent)
  return await Promise.resolve(
    new HarbourProvider({
      api,
      kube: kubernetes.client,
      nodeClasses: kubernetes.registry.cache(harbourNodeClass),
      catalogue: new Catalogue(api, clock),
      cluster: env['HARBOUR_CLUSTER'] ?? 'default',
      join: { server: kubernetes.server, token: joinToken },
      clock,
      logger,
    }),
  )
}
