// Paths of this origin to which a browser must return unchanged after a login. They come from reports of users of
// comparable programs.
export const returnPaths = [
  '/docs/my%20file.pdf',
  '/docs/caf%C3%A9.html',
  '/search?q=a+b',
  '/search?q=C%2B%2B',
  '/x?next=%2Fa%3Fb%3D1',
  '/x?a=1&b=2',
  '/x?a=1%23frag',
  '/wiki/100%25.html',
  '/files/folder%2Fhouse.rvt',
  '/v?path=C:\\models\\a.rvt',
  '/modelle/%C3%BCbersicht',
  '/x//y',
  '/v#/route?x=1'
] as const
