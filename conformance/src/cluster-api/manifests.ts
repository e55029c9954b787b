/** CRDs and webhooks from Cluster API's module, redirected to managers on loopback. */
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import type { KubeObject, ResourceType } from '@tenon/api'
import { parse, parseAllDocuments } from 'yaml'

/** Where the API server reaches the manager, and the CA of its certificate. */
export interface WebhookServer {
  readonly port: number
  /** PEM. */
  readonly authority: string
}

/** An object whose other fields are passed on. */
interface Definition extends KubeObject {
  readonly spec: Readonly<Record<string, unknown>>
}

interface Webhook<Where> {
  readonly name: string
  readonly clientConfig: Where
  readonly [field: string]: unknown
}

interface Configuration<Where> extends KubeObject {
  readonly webhooks: readonly Webhook<Where>[]
}

interface Kustomization {
  readonly labels?: readonly { readonly pairs: Readonly<Record<string, string>> }[]
}

/** As in the module: with a Service. */
type AtService = Configuration<{ readonly service: { readonly path: string } }>
export type WebhookConfiguration = Configuration<{ readonly url: string; readonly caBundle?: string }>

export interface ManagerManifests {
  readonly crds: readonly Definition[]
  readonly webhooks: readonly WebhookConfiguration[]
}

/** The kind of a webhook configuration: mutating or validating. */
export const webhookKind = ({
  kind,
}: Pick<WebhookConfiguration, 'kind'>): ResourceType<WebhookConfiguration> => ({
  group: 'admissionregistration.k8s.io',
  version: 'v1',
  kind,
  plural: `${kind.toLowerCase()}s`,
  namespaced: false,
})

/**
 * Reads what was kept when the manager was built.
 * @param folder its `manifests/`, named as the manager.
 * @throws Error if it does not exist
 */
export function readManifests(folder: string, server: WebhookServer): ManagerManifests {
  const bases = join(folder, 'crd', 'bases')
  const manager = basename(folder)
  if (!existsSync(bases)) {
    throw new Error(
      `the CRDs of Cluster API are not in ${bases}; remove the program ${manager} there to build both anew`,
    )
  }
  const { labels = [] } = parse(
    readFileSync(join(folder, 'crd', 'kustomization.yaml'), 'utf8'),
  ) as Kustomization
  const crds = readdirSync(bases)
    .filter((file) => file.endsWith('.yaml'))
    .flatMap((file) => documents(join(bases, file)) as readonly Definition[])
    .map((crd) => labelled(crd, Object.assign({}, ...labels.map(({ pairs }) => pairs))))
  const webhooks = documents(join(folder, 'webhook', 'manifests.yaml')) as readonly AtService[]
  return {
    crds: crds.map((crd) => convertedBy(server, crd)),
    webhooks: webhooks.map((configuration) => admittedBy(server, configuration, manager)),
  }
}

/** Cluster API's controllers read from these labels which version follows which contract. */
function labelled(crd: Definition, labels: Readonly<Record<string, string>>): Definition {
  return { ...crd, metadata: { ...crd.metadata, labels: { ...crd.metadata.labels, ...labels } } }
}

/** Both versions are stored as one; the manager converts. */
function convertedBy(server: WebhookServer, crd: Definition): Definition {
  const webhook = { conversionReviewVersions: ['v1'], clientConfig: clientConfig(server, '/convert') }
  return { ...crd, spec: { ...crd.spec, conversion: { strategy: 'Webhook', webhook } } }
}

function admittedBy(server: WebhookServer, configuration: AtService, manager: string): WebhookConfiguration {
  const { webhooks, metadata } = configuration
  return {
    ...configuration,
    metadata: { ...metadata, name: `${manager}-${metadata.name}` },
    webhooks: webhooks.map((webhook) => ({
      ...webhook,
      clientConfig: clientConfig(server, webhook.clientConfig.service.path),
    })),
  }
}

function clientConfig({ port, authority }: WebhookServer, path: string) {
  return { url: `https://127.0.0.1:${port}${path}`, caBundle: Buffer.from(authority).toString('base64') }
}

function documents(file: string): readonly unknown[] {
  return parseAllDocuments(readFileSync(file, 'utf8')).map((document) => document.toJS() as unknown)
}
