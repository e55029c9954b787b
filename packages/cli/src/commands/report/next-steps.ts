/** How to go on from a report: the manifest that starts Tenon beside what runs, and commands (adoption.md 1). */
import { karpenterKinds } from '@tenon/api'
import { ofKind } from '@tenon/ask/cost'
import { builtInProviders } from '../../providers.ts'
import type { GatheredFacts } from './gather.ts'

export interface NextStep {
  readonly title: string
  /** A file to write first. */
  readonly file?: { readonly name: string; readonly text: string }
  readonly commands: readonly string[]
}

/** @param unpricedTypes instance types without a known price. */
export function nextSteps(facts: GatheredFacts, unpricedTypes: readonly string[]): readonly NextStep[] {
  const { autoscalers, snapshot } = facts
  const isTenonThere = autoscalers.some(({ kind }) => kind === 'tenon')
  const hasPools = ofKind(snapshot, karpenterKinds.nodePool).length > 0
  return [
    ...(unpricedTypes.length === 0 ? [] : [priceStep(unpricedTypes)]),
    ...(isTenonThere
      ? [
          {
            title: 'See why each node is kept',
            commands: ['tenon get nodes -o wide', 'tenon simulate --for 24h'],
          },
        ]
      : [observeStep(snapshot.cloud.name, hasPools)]),
  ]
}

function priceStep(types: readonly string[]): NextStep {
  // A file that is not filled in must not be valid: all would cost nothing.
  const prices = types.map((type) => `    ${JSON.stringify(type)}: "?"`).join(',\n')
  return {
    title: 'Give the prices per hour that are missing, and run the report again',
    file: { name: 'prices.json', text: `{\n  "currency": "EUR",\n  "prices": {\n${prices}\n  }\n}\n` },
    commands: ['tenon report --prices prices.json --file report.html'],
  }
}

function observeStep(cloud: string, hasPools: boolean): NextStep {
  const known = builtInProviders.find(({ name }) => name === cloud)?.name
  const provider =
    known ?? `PROVIDER # one of ${builtInProviders.map(({ name }) => name).join(', ')}, or a module`
  return {
    title: 'Let Tenon decide beside what runs, and carry out nothing',
    file: { name: 'values.yaml', text: `provider: ${provider}\nsettings:\n  observeOnly: true\n` },
    commands: [
      'tenon preflight',
      ...(hasPools ? [] : ['tenon crds apply', 'tenon init > pools.yaml', 'kubectl apply -f pools.yaml']),
      'helm install tenon charts/tenon --namespace tenon --create-namespace --values values.yaml',
      'tenon report --shadow --file shadow.html',
    ],
  }
}
