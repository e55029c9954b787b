import { createHash } from 'node:crypto'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

/** Environment variables that say where binaries come from. */
export type Environment = Readonly<Record<string, string | undefined>>

/** The binary of a program of the control plane, or of one that tests need. */
export type ComponentName =
  | 'etcd'
  | 'kube-apiserver'
  | 'kube-controller-manager'
  | 'kube-scheduler'
  | 'kubectl'
  | 'kwok'
  | 'helm'
  | 'actionlint'
  | 'cluster-api-manager'
  | 'kubeadm-bootstrap-manager'
  | 'kubeadm-control-plane-manager'

/** Go programs that share a `go.mod` in `control-plane/<folder>/`. */
export interface GoModule {
  readonly folder: string
  /** The module whose version the programs report. */
  readonly path: string
  /** Package path of each program. */
  readonly packages: Readonly<Partial<Record<ComponentName, string>>>
  /** Linker variables to set to the module's version. */
  readonly stamp: (version: string) => Readonly<Record<string, string>>
  /** Folders in the module {@link path} that are kept beside the programs, as `manifests/<program>/`. */
  readonly manifests?: Readonly<Partial<Record<ComponentName, string>>>
}

/** What a control plane needs in order to run. */
export const controlPlaneComponents: readonly ComponentName[] = [
  'etcd',
  'kube-apiserver',
  'kube-controller-manager',
  'kube-scheduler',
  'kwok',
  'kubectl',
]

/** With the minor that is built where no other one is named. */
const defaultFolder = 'kubernetes'
const modulesFolder = fileURLToPath(new URL('../control-plane/', import.meta.url))

/** A minor version of Kubernetes that is not pinned, or no version at all. */
export class UnknownMinorError extends Error {
  readonly code = 'UNKNOWN_MINOR'
}

/**
 * The folder with the pinned modules of Kubernetes.
 * @param minor such as `1.34`; undefined for the default.
 */
function kubernetesFolder(minor: string | undefined): string {
  if (minor === undefined || minor === '') return defaultFolder
  if (
    readFileSync(join(modulesFolder, defaultFolder, 'go.mod'), 'utf8').includes(
      `k8s.io/kubernetes v${minor}.`,
    )
  )
    return defaultFolder
  const folder = `kubernetes-${minor}`
  const folders = readdirSync(modulesFolder)
  if (folders.includes(folder)) return folder
  const others = folders.flatMap((name) => /^kubernetes-(.+)$/.exec(name)?.[1] ?? []).join(', ')
  throw new UnknownMinorError(`Kubernetes ${minor} is not pinned; there are ${others}, and the default`)
}

/**
 * The pinned Go modules. Each has its own `go.mod`, because their dependencies' versions conflict. TENON_KUBERNETES
 * chooses the minor version of Kubernetes.
 */
export const goModules = (environment: Environment): readonly GoModule[] => [
  {
    folder: 'etcd',
    path: 'go.etcd.io/etcd/server/v3',
    packages: { etcd: 'go.etcd.io/etcd/server/v3' },
    stamp: () => ({}),
  },
  {
    folder: 'kwok',
    path: 'sigs.k8s.io/kwok',
    packages: { kwok: 'sigs.k8s.io/kwok/cmd/kwok' },
    stamp: () => ({}),
  },
  {
    folder: kubernetesFolder(environment['TENON_KUBERNETES']),
    path: 'k8s.io/kubernetes',
    packages: {
      'kube-apiserver': 'k8s.io/kubernetes/cmd/kube-apiserver',
      'kube-controller-manager': 'k8s.io/kubernetes/cmd/kube-controller-manager',
      'kube-scheduler': 'k8s.io/kubernetes/cmd/kube-scheduler',
      kubectl: 'k8s.io/kubernetes/cmd/kubectl',
    },
    stamp: kubernetesStamp,
  },
  {
    folder: 'helm',
    path: 'helm.sh/helm/v4',
    packages: { helm: 'helm.sh/helm/v4/cmd/helm' },
    stamp: (version) => ({ 'helm.sh/helm/v4/internal/version.version': version }),
  },
  {
    folder: 'actionlint',
    path: 'github.com/rhysd/actionlint',
    packages: { actionlint: 'github.com/rhysd/actionlint/cmd/actionlint' },
    stamp: () => ({}),
  },
  {
    folder: 'cluster-api',
    path: 'sigs.k8s.io/cluster-api',
    packages: {
      'cluster-api-manager': 'sigs.k8s.io/cluster-api/core',
      'kubeadm-bootstrap-manager': 'sigs.k8s.io/cluster-api/bootstrap/kubeadm',
      'kubeadm-control-plane-manager': 'sigs.k8s.io/cluster-api/controlplane/kubeadm',
    },
    stamp: (version) => gitStamp(['sigs.k8s.io/cluster-api/version'], version),
    manifests: {
      'cluster-api-manager': 'core/config',
      'kubeadm-bootstrap-manager': 'bootstrap/kubeadm/config',
      'kubeadm-control-plane-manager': 'controlplane/kubeadm/config',
    },
  },
]

/** The folder of the module's `go.mod`. */
export function moduleFolder(module: GoModule): string {
  return join(modulesFolder, module.folder)
}

/** The version of the module in `go.mod`, such as `v1.36.3`. */
export function pinnedVersion(module: GoModule): string {
  const text = readFileSync(join(moduleFolder(module), 'go.mod'), 'utf8')
  const line = text.split('\n').find((candidate) => {
    const words = candidate
      .replace(/^require\b/, '')
      .trim()
      .split(/\s+/)
    return words[0] === module.path && words[1]?.startsWith('v') === true
  })
  const version = line
    ?.replace(/^require\b/, '')
    .trim()
    .split(/\s+/)[1]
  if (version === undefined) throw new Error(`${module.folder}/go.mod pins no version of ${module.path}`)
  return version
}

/** Arguments of `go build` for a reproducible result. */
export function buildFlags(module: GoModule): readonly string[] {
  const variables = Object.entries(module.stamp(pinnedVersion(module)))
  const linker = ['-s', '-w', ...variables.flatMap(([name, value]) => ['-X', `${name}=${value}`])]
  return ['-mod=readonly', '-trimpath', '-buildvcs=false', '-ldflags', linker.join(' ')]
}

/** Changes whenever anything changes that the module's binaries depend on; 16 hexadecimal digits. */
export function buildHash(module: GoModule, platform: string): string {
  const hash = createHash('sha256')
  for (const file of ['go.mod', 'go.sum']) hash.update(readFileSync(join(moduleFolder(module), file)))
  const { manifests } = module
  hash.update(JSON.stringify([buildFlags(module), platform, ...(manifests === undefined ? [] : [manifests])]))
  return hash.digest('hex').slice(0, 16)
}

function kubernetesStamp(version: string): Record<string, string> {
  return gitStamp(['k8s.io/component-base/version', 'k8s.io/client-go/pkg/version'], version)
}

/**
 * The version as Kubernetes' own builds set it. The module proxy knows no commit, and a build date would make
 * every build differ, so both are fixed.
 */
function gitStamp(packages: readonly string[], version: string): Record<string, string> {
  const [major, minor] = version.replace(/^v/, '').split('.')
  const values = {
    gitVersion: version,
    gitMajor: major ?? '',
    gitMinor: minor ?? '',
    gitCommit: 'unknown',
    gitTreeState: 'clean',
    buildDate: '1970-01-01T00:00:00Z',
  }
  return Object.fromEntries(
    packages.flatMap((name) => Object.entries(values).map(([key, value]) => [`${name}.${key}`, value])),
  )
}
