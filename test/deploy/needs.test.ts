// Each sample begins with a comment that names the programs and images that it needs, and where they come from.
import test from 'ava'
import { filesBelow, readText } from '../helpers/repository.js'

// These files belong to another sample, or their format has no comments.
const without = /\.(json|dockerignore|md)$|\/helm\/(\.helmignore|Chart\.yaml|files\/|templates\/)/

// The operator puts these files with secrets there. Git ignores them.
const secrets = /^deploy\/(server\.env|secrets\/|tls\/)/

const samples = filesBelow('deploy').filter(path => !without.test(path) && !secrets.test(path))

for (const path of samples) {
  test(`${path} says what it needs`, t => {
    const comment = /^(#.*\n)+/.exec(readText(path))?.[0].replaceAll(/^#/gm, '').replaceAll('\n', ' ') ?? ''
    const [, needs = ''] = /Needs: (.*)/.exec(comment) ?? []
    t.true(needs.length > 10)
    const images = [...readText(path).matchAll(/^ *(?:image: |ARG NODE_IMAGE=)([\w./-]+:[\w.-]+)$/gm)]
    // An image at registry.example.com is one that the reader has built.
    const ours = images.map(([, image = '']) => image).filter(image => !image.startsWith('registry.example.com/'))
    for (const image of ours) t.true(needs.includes(image), image)
  })
}
