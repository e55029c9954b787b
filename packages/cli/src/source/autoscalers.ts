/** Recognizes Deployments that run an autoscaler of nodes. */
import type { Container, KubeObject, ResourceType } from '@tenon/api'

export interface Deployment extends KubeObject {
  readonly spec?: {
    readonly replicas?: number
    readonly template?: {
      readonly spec?: {
        readonly serviceAccountName?: string
        readonly containers?: readonly StartedContainer[]
      }
    }
  }
}

interface StartedContainer extends Container {
  readonly command?: readonly string[]
  readonly args?: readonly string[]
  readonly env?: readonly { readonly name: string; readonly value?: string }[]
}

export const deploymentKind: ResourceType<Deployment> = {
  group: 'apps',
  version: 'v1',
  kind: 'Deployment',
  plural: 'deployments',
  namespaced: true,
}

/** A value of `--nodes`. */
interface NodesFlag {
  readonly min: number
  readonly max: number
  readonly name: string
}

export type RunningAutoscaler = {
  readonly deployment: Deployment
  readonly namespace: string
  readonly name: string
} & (
  | {
      readonly kind: 'tenon'
      readonly serviceAccount: string
      readonly provider: string
      /** A setting of the controller; the flag takes precedence over the variable. */
      readonly setting: (flag: string, variable: string) => string
    }
  | { readonly kind: 'karpenter' }
  | {
      readonly kind: 'clusterAutoscaler'
      readonly serviceAccount: string
      readonly nodes: readonly NodesFlag[]
      /** All values of a flag, in order. */
      readonly flag: (name: string) => readonly string[]
    }
)

/** Undefined for a Deployment that runs none, or has no replicas. */
export function autoscalerIn(deployment: Deployment): RunningAutoscaler | undefined {
  const { metadata, spec } = deployment
  if (spec?.replicas === 0) return undefined
  const at = { deployment, namespace: metadata.namespace ?? '', name: metadata.name }
  for (const container of spec?.template?.spec?.containers ?? []) {
    const words = wordsOf(container)
    if (isClusterAutoscaler(container, words))
      return {
        ...at,
        kind: 'clusterAutoscaler',
        serviceAccount: serviceAccountOf(deployment),
        nodes: nodesFlags(words),
        flag: (name) => flagValues(words, name),
      }
    if (isTenon(container, words))
      return {
        ...at,
        kind: 'tenon',
        serviceAccount: serviceAccountOf(deployment),
        provider: flagValues(words, 'provider').at(-1) ?? '',
        setting: (flag, variable) =>
          flagValues(words, flag).at(-1) ?? container.env?.find(({ name }) => name === variable)?.value ?? '',
      }
    if (isKarpenter(container)) return { ...at, kind: 'karpenter' }
  }
  return undefined
}

/** The command line of a container. */
function wordsOf({ command = [], args = [] }: StartedContainer): readonly string[] {
  return [...command, ...args]
}

function isClusterAutoscaler({ image = '' }: Container, [first = '']: readonly string[]): boolean {
  return /cluster-autoscaler/.test(baseName(image)) || /(^|\/)cluster-autoscaler$/.test(first)
}

/** The image may have any name, so the command line is checked too. */
function isTenon({ image = '' }: Container, words: readonly string[]): boolean {
  return (
    baseName(image) === 'tenon' || (words[0] === 'controller' && flagValues(words, 'provider').length > 0)
  )
}

/** Its own images are `karpenter/controller` and the like; those of cloud vendors contain the name. */
function isKarpenter({ image = '' }: Container): boolean {
  return /karpenter/.test(image.split('@')[0] ?? '')
}

/** The name of an image without registry, tag and digest. */
function baseName(image: string): string {
  return (image.split('@')[0] ?? '').split('/').at(-1)?.split(':')[0] ?? ''
}

function serviceAccountOf({ spec }: Deployment): string {
  const { serviceAccountName = '' } = spec?.template?.spec ?? {}
  return serviceAccountName === '' ? 'default' : serviceAccountName
}

function nodesFlags(words: readonly string[]): readonly NodesFlag[] {
  return flagValues(words, 'nodes').flatMap((value) => {
    const [, min = '', max = '', name = ''] = /^(\d+):(\d+):(.+)$/.exec(value) ?? []
    return name === '' ? [] : [{ min: Number(min), max: Number(max), name }]
  })
}

/** A shell command line is one word, with its own quotes around values. */
function flagValues(words: readonly string[], flag: string): readonly string[] {
  // A word may be a whole script, but a flag and its value are arguments as they are: a selector has spaces.
  const split = words.flatMap((word, at) =>
    word.startsWith('-') || words[at - 1]?.startsWith('--') === true ? [word] : word.split(/\s+/),
  )
  return split.flatMap((word, at) => {
    if (word === `--${flag}` || word === `-${flag}`) return split[at + 1] ?? []
    const [, value] = new RegExp(`^--?${flag}=(.*)$`).exec(word) ?? []
    return value === undefined ? [] : [value.replace(/^["']|["']$/g, '')]
  })
}
