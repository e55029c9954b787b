/** Lists what is in the image and in the command, in the format of CycloneDX. */
import { Enums, Models, Serialize, Spec } from '@cyclonedx/cyclonedx-library'
import { architectures, debianPackages, nodePackage } from './base.ts'

/** @param notices the licenses of the packages in the bundle, as they are in the image. */
export function billOfMaterials(version: string, notices: string, date: Date): string {
  const { Component, ComponentRepository, LicenseExpression, LicenseRepository } = Models
  const licensed = (expression: string) => new LicenseRepository([new LicenseExpression(expression)])
  const packages = notices.matchAll(/^(\S+) (\S+)\nLicense: (.+)$/gm)
  const bundled = Array.from(packages, ([, name = '', release = '', license = '']) => {
    const purl = `pkg:npm/${name.replace('@', '%40')}@${release}`
    return new Component(Enums.ComponentType.Library, name, {
      bomRef: purl,
      version: release,
      purl,
      licenses: licensed(license),
    })
  })
  const debian = debianPackages.flatMap((each) =>
    architectures.map((architecture) => {
      const { name, version: release } = each
      const purl = `pkg:deb/debian/${encodeURIComponent(name)}@${encodeURIComponent(release)}?arch=${architecture}&distro=debian-12`
      return new Component(Enums.ComponentType.Library, name, {
        bomRef: purl,
        version: release,
        purl,
        hashes: new Models.HashDictionary([[Enums.HashAlgorithm['SHA-256'], each[architecture]]]),
      })
    }),
  )
  const node = nodePackage('amd64').version
  const runtime = new Component(Enums.ComponentType.Platform, 'node', {
    bomRef: `pkg:generic/node@${node}`,
    version: node,
    purl: `pkg:generic/node@${node}`,
    cpe: `cpe:2.3:a:nodejs:node.js:${node}:*:*:*:*:*:*:*`,
    licenses: licensed('MIT'),
  })
  const tenon = new Component(Enums.ComponentType.Container, 'tenon', {
    bomRef: `tenon@${version}`,
    version,
    licenses: licensed('Apache-2.0'),
  })
  const bom = new Models.Bom({
    metadata: new Models.Metadata({ component: tenon, timestamp: date }),
    components: new ComponentRepository([...bundled, ...debian, runtime]),
  })
  const serializer = new Serialize.JsonSerializer(new Serialize.JSON.Normalize.Factory(Spec.Spec1dot6))
  return `${serializer.serialize(bom, { sortLists: true, space: 2 })}\n`
}
