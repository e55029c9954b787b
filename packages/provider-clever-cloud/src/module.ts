import type { ProviderModule, ProviderOption } from '@tenon/provider'
import { defaultRegion } from './names.ts'
import { cleverNodeClassKind } from './nodeclass/types.ts'

const region: ProviderOption = {
  flag: 'clever-cloud-region',
  variable: 'CLEVER_CLOUD_REGION',
  kind: 'name',
  fallback: defaultRegion,
  takes: 'NAME',
  meaning: 'Zone and region of the nodes.',
}
const flavors: ProviderOption = {
  flag: 'flavors-config-path',
  variable: 'FLAVORS_CONFIG_PATH',
  kind: 'text',
  fallback: '',
  takes: 'PATH',
  meaning: 'YAML file that changes or adds flavors.',
}

/** Clever Kubernetes Engine. */
export const cleverCloud: ProviderModule = {
  name: 'clever-cloud',
  title: 'Clever Cloud',
  repairsNodes: true,
  nodeClasses: [cleverNodeClassKind],
  options: [region, flavors],
  validateOptions: [
    {
      ...flavors,
      takes: 'path',
      meaning: 'flavors of Clever Cloud to check against (FLAVORS_CONFIG_PATH, default: the built-in ones)',
    },
  ],
  examples: {
    controller: ['tenon controller --provider clever-cloud --leader-election-namespace kube-system'],
    validate: ['tenon validate examples/clever-cloud --flavors-config-path flavors.yaml'],
  },
  formerNodeClasses: {},
  crds: async () => {
    const { cleverNodeClassCrd } = await import('./nodeclass/crd.ts')
    return [cleverNodeClassCrd]
  },
  chart: async () => {
    const { chart } = await import('./chart.ts')
    return chart
  },
  open: async (dependencies) => {
    const { openCleverCloud } = await import('./open.ts')
    return await openCleverCloud(dependencies)
  },
  offline: async (env, readText) => {
    const { offlineCatalogue } = await import('./offline.ts')
    return await offlineCatalogue(env, readText)
  },
  survey: async () => {
    const { surveyModule } = await import('./survey.ts')
    return surveyModule
  },
  preflight: async () => {
    const { preflightModule } = await import('./preflight.ts')
    return preflightModule
  },
}
